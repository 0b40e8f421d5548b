"""`python -m troupe` is the command `troupe`."""
from .program import main

main()
