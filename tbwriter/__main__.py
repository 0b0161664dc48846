"""`python -m tbwriter` is the `tbwriter` command."""

from tbwriter.cli import main

if __name__ == "__main__":
    main()
