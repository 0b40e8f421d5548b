"""Troupe from Python: runs, plans and what runs leave behind. The work is done by
the program `troupe`; nothing here computes.

    import troupe
    for metrics in troupe.train("run.yaml", {"run.steps": 20}):
        print(metrics["step"], metrics["perf/throughput"])
"""
from .errors import (ConfigError, PlanError, ProgramMissing, RunFailed,
                     RunInterrupted, RunStopped, TroupeError)
from .planning import (ComparedPlan, DeviceMemory, DeviceTime, FoundPlan,
                       PlanCheck, PlanComparison, PlanMistake, PlanSearch,
                       PlanSimulation, Staleness, Task, plan_check,
                       plan_compare, plan_search, plan_simulate)
from .program import find_program
from .run_folder import Checkpoint, RunFolder, RunStatus, Sample, load_samples
from .training import Training, train
from .workflow import Workflow

__version__ = "0.1.0"
__all__ = [
    "Checkpoint", "ComparedPlan", "ConfigError", "DeviceMemory", "DeviceTime",
    "FoundPlan", "PlanCheck", "PlanComparison", "PlanError", "PlanMistake",
    "PlanSearch", "PlanSimulation", "ProgramMissing", "RunFailed", "RunFolder",
    "RunInterrupted", "RunStatus", "RunStopped", "Sample", "Staleness", "Task",
    "Training", "TroupeError", "Workflow", "find_program", "load_samples", "plan_check",
    "plan_compare", "plan_search", "plan_simulate", "train"]
