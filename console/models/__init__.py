"""The models that a tandem trace is compared with: Spike and the simulated hart, as `session.verify.model.Model`."""

from dataclasses import replace

from rvtrace_gdb.console.models.machine import BadModel, ModelOptions, machine_of
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.verify.model import Model

__all__ = ["MODELS", "BadModel", "ModelOptions", "open_model"]

MODELS = ("spike", "simulated")


_USUAL = ModelOptions()


def open_model(name: str, image: Image | None, parameters: TandemParameters, options: ModelOptions = _USUAL) -> Model:
    """Return the model of this name, reset and with the program loaded. The caller closes it.

    Raises BadModel for options that the model does not support, ModelFailed when it cannot be started.
    """
    if name == "spike":
        from rvtrace_gdb.console.models.spike import Spike

        machine = machine_of(image, parameters, options)
        return Spike(machine, python=options.python, timeout=options.timeout)
    if name == "simulated":
        from rvtrace_gdb.console.models.simulated import Simulated

        return Simulated(machine_of(image, parameters, replace(options, priv=options.priv or "mu")))
    raise BadModel(f"there is no model {name!r}: use one of {', '.join(MODELS)}")
