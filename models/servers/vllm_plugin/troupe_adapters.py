"""Adapters (LoRA) of the model that a server has: of each adapted matrix W a pair
A [rank, in], B [out, rank], by PEFT's names.

W is sent once, with the whole base model, which stays in memory here; later updates
have adapters only. vLLM gets W + scale B A as a whole model each time, since its
reload of a part of the weights mixes old and new ones. The sum is the caller's, so
that tests without torch check names and shapes by this file too."""
PREFIX = "base_model.model."
ENDS = (".lora_A.weight", ".lora_B.weight")


def torch_sum(weight, a, b, scale):
    """W + scale B A in fp32, as W's type."""
    return (weight.float() + scale * (b.float() @ a.float())).to(weight.dtype)


def module_of(name):
    """The module of an adapter's name, and 0 for its A or 1 for its B."""
    for which, end in enumerate(ENDS):
        if name.startswith(PREFIX) and name.endswith(end):
            return name[len(PREFIX):-len(end)], which
    raise ValueError(f"{name}: not the name of an adapter")


class Adapters:
    def __init__(self, add):
        self.add = add        # (W, A, B, scale) -> their sum
        self.base = {}        # {name: tensor} that adapters are added to
        self.adapted = set()  # matrices of the last update
        self.forget()

    def forget(self):
        """Forgets what an update brought."""
        self.pairs = {}    # {matrix: [name of A, name of B]}
        self.shapes = {}   # {name of A or B: the shape that it must have}
        self.tensors = {}  # {name of A or B: tensor}
        self.scale = 0

    def expect(self, sent, scale, stored, name_of, has_base):
        """Checks the names {name: shape} of a file of adapters before they are read;
        `stored` has the shapes of the server's model, by the names that `name_of`
        returns. The tensors belong into what is returned."""
        if not has_base and not self.base:
            raise ValueError("adapters came without the weights that they belong to")
        self.forget()
        self.scale = scale
        for name in sent:
            module, which = module_of(name)
            matrix = name_of(module + ".weight")
            if len(stored.get(matrix, [])) != 2:
                raise ValueError(f"{name}: the server has no such matrix")
            self.pairs.setdefault(matrix, [None, None])[which] = name
        for matrix, pair in self.pairs.items():
            self.expect_pair(pair, sent, *stored[matrix])
        if not self.pairs:
            raise ValueError("an update of adapters has none")
        missing = [] if has_base else sorted(self.adapted - self.pairs.keys())
        if missing:
            raise ValueError(f"{missing[0]}: its adapter is missing, "
                             f"one of {len(missing)}")
        return self.tensors

    def expect_pair(self, pair, sent, rows, columns):
        for which in (0, 1):
            if pair[which] is None:
                module, _ = module_of(pair[1 - which])
                raise ValueError(f"{PREFIX}{module}{ENDS[which]}: missing")
        rank = sent[pair[0]][0]
        self.shapes |= {pair[0]: [rank, columns], pair[1]: [rows, rank]}

    def base_of(self, sent):
        """The weights without adapters of an update that sent these."""
        return sent or (self.base if self.pairs else {})

    def added(self, base):
        """(name, tensor) of a whole model, one at a time."""
        for name, weight in base.items():
            pair = self.pairs.get(name)
            yield name, weight if pair is None else self.add(
                weight, *(self.tensors[which] for which in pair), self.scale)

    def keep(self, base):
        """Ends an update: its base, if it has adapters, is that of the next one."""
        self.base, self.adapted = (base if self.pairs else {}), set(self.pairs)
        self.forget()
