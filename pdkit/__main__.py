"""`python -m pdkit`."""

from pdkit.cli import main

main()
