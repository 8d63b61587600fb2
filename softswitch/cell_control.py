"""Indirect counters and meters, and registers, of a running program: arrays of cells by name."""

from abc import ABC, abstractmethod

from softswitch.entries import CounterData, MeterConfig
from softswitch.errors import InvalidArgument, NotFound, OutOfRange
from softswitch.meters import MeterArray
from softswitch.state import State


class CellControl(ABC):
    """Base of `Device`. All raise NotFound for an unknown name, OutOfRange for an index."""

    @property
    @abstractmethod
    def _state(self) -> State:
        """State of the running program; FailedPrecondition before a load."""

    # --- counters -------------------------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterData:
        """One cell of an indirect counter."""
        state = self._state
        number = _counter_number(state, name, index)
        return CounterData(state.packets[number][index], state.bytes[number][index])

    def counters(self, name: str) -> tuple[CounterData, ...]:
        """All cells of an indirect counter."""
        state = self._state
        number = _indirect_counter(state, name)
        packets, octets = state.packets[number], state.bytes[number]
        # a large array of cells is sparse: it gives each, but does not list them
        return tuple(
            CounterData(packets[i], octets[i]) for i in range(state.program.counters[name].size)
        )

    def set_counter(self, name: str, index: int, value: CounterData) -> None:
        """Set one cell of an indirect counter."""
        state = self._state
        number = _counter_number(state, name, index)
        state.packets[number][index] = value.packets
        state.bytes[number][index] = value.bytes

    # --- meters ---------------------------------------------------------------------------------

    def meter(self, name: str, index: int) -> MeterConfig | None:
        """Configuration of one meter cell; None: not configured, always green."""
        cell = _meters(self._state, name, index).cells.get(index)
        return None if cell is None else cell.config

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        """Configure one meter cell."""
        _meters(self._state, name, index).configure(index, config)

    # --- registers (not served over P4Runtime, as on bmv2) --------------------------------------

    def register(self, name: str, index: int) -> int:
        """One cell of a register."""
        state = self._state
        return state.registers[_register_number(state, name, index)][index]

    def set_register(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register; InvalidArgument if it does not fit."""
        state = self._state
        number = _register_number(state, name, index)
        width = state.program.registers[name].width
        if not 0 <= value < 1 << width:
            raise InvalidArgument(f"register '{name}': {value} does not fit in {width} bits")
        state.registers[number][index] = value


def _indirect_counter(state: State, name: str) -> int:
    counter = state.program.counters.get(name)
    if counter is None or counter.table is not None:
        raise NotFound(f"the program has no indirect counter '{name}'")
    return list(state.program.counters).index(name)


def _counter_number(state: State, name: str, index: int) -> int:
    number = _indirect_counter(state, name)
    _check_range("counter", name, index, state.program.counters[name].size)
    return number


def _meters(state: State, name: str, index: int) -> MeterArray:
    meter = state.program.meters.get(name)
    if meter is None or meter.table is not None:
        raise NotFound(f"the program has no indirect meter '{name}'")
    _check_range("meter", name, index, meter.size)
    return state.meters[list(state.program.meters).index(name)]


def _register_number(state: State, name: str, index: int) -> int:
    register = state.program.registers.get(name)
    if register is None:
        raise NotFound(f"the program has no register '{name}'")
    _check_range("register", name, index, register.size)
    return list(state.program.registers).index(name)


def _check_range(what: str, name: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise OutOfRange(f"{what} '{name}' has cells 0..{size - 1}, not {index}")
