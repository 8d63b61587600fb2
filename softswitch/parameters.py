"""Parameters of a running program other than its tables: hashes and parser value sets."""

from abc import ABC, abstractmethod

from softswitch.entries import CrcConfig
from softswitch.errors import InvalidArgument, NotFound
from softswitch.hashes import CustomCrc, Toeplitz
from softswitch.state import State


class Parameters(ABC):
    """Base of `Device`."""

    @property
    @abstractmethod
    def _state(self) -> State:
        """State of the running program; FailedPrecondition before a load."""

    @property
    def has_ages(self) -> bool:
        """Whether entries of the running program may go idle, so that `Device.age` has work."""
        return self._state.has_ages

    # --- hashes -----------------------------------------------------------------------------------

    def set_crc(self, calculation: str, config: CrcConfig) -> None:
        """Give a calculation with a custom CRC other parameters (``set_crc16_parameters`` there).

        `program.calculations` lists the names. NotFound; InvalidArgument for another width.
        """
        found = self._state.hashes.get(calculation)
        if not isinstance(found, CustomCrc):
            raise NotFound(f"the program has no calculation '{calculation}' with a custom CRC")
        if config.width != found.config.width:
            raise InvalidArgument(f"calculation '{calculation}' is {found.config.width} bits wide")
        if max(config.polynomial, config.initial, config.final_xor) >> config.width:
            raise InvalidArgument(f"calculation '{calculation}': a parameter is too wide")
        found.configure(config)

    def set_toeplitz_key(self, calculation: str, key: bytes) -> None:
        """Set the key of a Toeplitz hash: a multiple of 4 bytes, the first for the first bits."""
        found = self._state.hashes.get(calculation)
        if not isinstance(found, Toeplitz):
            raise NotFound(f"the program has no calculation '{calculation}' with a Toeplitz hash")
        if not key or len(key) % 4:
            raise InvalidArgument(f"calculation '{calculation}': a key of 4, 8, 12, ... bytes")
        found.configure(key)

    # --- parser value sets ----------------------------------------------------------------------

    def set_value_set(self, name: str, members: frozenset[int]) -> None:
        """Replace the members of a parser value set, in one step.

        A member of a set of several fields joins them, the first in the highest bits.
        """
        if name not in self._state.program.value_sets:
            raise NotFound(f"the program has no parser value set '{name}'")
        number = list(self._state.program.value_sets).index(name)
        width = self._state.program.value_sets[name].width
        for member in members:
            if not 0 <= member < 1 << width:
                raise InvalidArgument(f"value set '{name}': {member} does not fit in {width} bits")
        self._state.value_sets[number] = members

    def value_set(self, name: str) -> frozenset[int]:
        """The members of a parser value set."""
        if name not in self._state.program.value_sets:
            raise NotFound(f"the program has no parser value set '{name}'")
        return self._state.value_sets[list(self._state.program.value_sets).index(name)]
