"""`python -m dialsim` is the `dialsim` program."""

from dialsim.cli import main

if __name__ == "__main__":
    main()
