"""Errors a user can fix, as one tree.

::

    RooflineError            exit code 2 on the command line
      UnitError              a quantity that cannot be read
      ProfileError           a hardware, calibration or measurement file with faults
      ModelError             a config.json or model name that cannot be used
      CapacityError          something that does not fit into memory
      AcceptanceError        an acceptance description that contradicts itself
      CalibrationError       too little or unusable data to fit
      DeviceError            a device that cannot be opened or measured
    CheckFailed              exit code 1: a check, suite or tolerance failed

Each message names the thing, the value, the reason and the next step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RooflineError(Exception):
    """Base of every error that the user can fix."""


class UnitError(RooflineError, ValueError):
    """A quantity that cannot be read."""


class ProfileError(RooflineError):
    """A YAML file (hardware, calibration) or a measurement file with faults."""


class ModelError(RooflineError):
    """A model or drafter that is unknown or cannot be read."""


class CapacityError(RooflineError):
    """A model, cache and drafter that do not fit into the memory of the device."""


class AcceptanceError(RooflineError, ValueError):
    """An acceptance description that is impossible or contradicts itself."""


class CalibrationError(RooflineError):
    """Measurements that cannot be fitted."""


class DeviceError(RooflineError):
    """A device that cannot be opened or measured."""


class CheckFailed(Exception):  # noqa: N818 - not an error of the program: the check worked and said no
    """A check, suite or tolerance that did not hold (exit code 1)."""


MOST_NAMES = 16
"""Names that an error lists where none is near."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """Say which known names are nearest to an unknown one, or list them all when few.

    >>> nearest("bandwith", ["bandwidth", "capacity"])
    'did you mean bandwidth?'
    >>> nearest("zzz", ["a", "b"])
    'known: a, b'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=count, cutoff=0.55)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:MOST_NAMES])
    return f"known: {shown}" + (f" ... ({len(names)} in all)" if len(names) > MOST_NAMES else "")
