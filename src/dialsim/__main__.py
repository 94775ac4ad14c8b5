"""Entry point of `python -m dialsim`."""

from dialsim.cli import main

if __name__ == "__main__":
    main()
