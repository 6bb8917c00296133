"""The ``fared`` command: signals wait from its first instruction on, before all other imports."""

from fared.runtime.signals import hold


def main() -> None:
    """Run ``fared.daemon.main``."""
    hold()
    from fared.daemon.main import main as daemon  # noqa: PLC0415 - it takes a tenth of a second

    daemon()


if __name__ == "__main__":
    main()
