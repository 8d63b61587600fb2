"""Hash algorithms, against published values."""

from json import dumps

import pytest

from softswitch.codegen import compile_program
from softswitch.device import Device
from softswitch.entries import CrcConfig
from softswitch.errors import InvalidArgument, NotFound
from softswitch.hashes import (
    ConsistentRoundRobin,
    CustomCrc,
    RoundRobin,
    Toeplitz,
    crc16,
    crc32,
    crc_ccitt,
    stateful_hash,
    xor16,
    xor32,
)
from softswitch.loader import load_program
from tests.unit.softswitch.programs import document

CHECK = b"123456789"
RSS_KEY = bytes.fromhex(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
)


def test_crcs_give_their_check_values() -> None:
    assert crc16(CHECK) == 0xBB3D  # CRC-16/ARC
    assert crc_ccitt(CHECK) == 0x29B1  # CRC-16/CCITT-FALSE
    assert crc32(CHECK) == 0xCBF43926  # CRC-32/ISO-HDLC


@pytest.mark.parametrize(
    ("config", "check"),
    [
        (CrcConfig(8, 0x07, 0, 0, False, False), 0xF4),  # CRC-8/SMBUS
        (CrcConfig(16, 0x8005, 0, 0, True, True), 0xBB3D),
        (CrcConfig(16, 0x1021, 0x1D0F, 0, False, False), 0xE5CC),  # CRC-16/SPI-FUJITSU
        (CrcConfig(32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xE3069283),  # CRC-32C
        (CrcConfig(64, 0x42F0E1EBA9EA3693, 0, 0, False, False), 0x6C40DF5F0B497347),  # ECMA-182
    ],
)
def test_a_custom_crc_takes_any_parameters(config: CrcConfig, check: int) -> None:
    assert CustomCrc(config)(CHECK) == check


def test_custom_crcs_start_as_the_plain_ones() -> None:
    assert stateful_hash("crc16_custom")(CHECK) == crc16(CHECK)
    assert stateful_hash("crc32_custom")(CHECK) == crc32(CHECK)


def test_toeplitz_agrees_with_the_vectors_of_receive_side_scaling() -> None:
    hashed = Toeplitz(RSS_KEY)
    addresses = bytes([66, 9, 149, 187, 161, 142, 100, 80])
    assert hashed(addresses) == 0x323E8FC2
    assert hashed(addresses + (2794).to_bytes(2) + (1766).to_bytes(2)) == 0x51CCC178
    assert Toeplitz()(addresses) == 0


def test_round_robins_count() -> None:
    assert [RoundRobin()(b"a")] == [0]
    turn = RoundRobin()
    assert [turn(b"a"), turn(b"a"), turn(b"b")] == [0, 1, 2]
    consistent = ConsistentRoundRobin()
    assert [consistent(d) for d in (b"a", b"b", b"a", b"c", b"b")] == [0, 1, 0, 2, 1]


def test_words_are_folded_with_zeros_behind() -> None:
    assert xor16(b"\x01\x02\x03") == 0x0102 ^ 0x0300
    assert xor32(b"\x01\x02\x03\x04\x05") == 0x01020304 ^ 0x05000000


def test_a_device_sets_the_parameters_of_its_own_calculation() -> None:
    program = document("state")
    calculation = next(c for c in program["calculations"] if c["algo"] == "crc16")
    calculation["algo"] = "crc16_custom"
    first, second = Device(), Device()
    for device in (first, second):
        device.load_pipeline(dumps(program).encode())
    name = calculation["name"]
    first.set_crc(name, CrcConfig(16, 0x1021, 0, 0, False, False))
    packet = bytes([7]) + bytes(range(1, 9))
    assert first.process(0, packet) != second.process(0, packet)
    with pytest.raises(InvalidArgument, match="16 bits wide"):
        first.set_crc(name, CrcConfig(8, 7, 0, 0, False, False))
    with pytest.raises(InvalidArgument, match="too wide"):
        first.set_crc(name, CrcConfig(16, 1 << 16, 0, 0, False, False))
    with pytest.raises(NotFound):
        first.set_toeplitz_key(name, bytes(4))
    assert compile_program(load_program(dumps(program).encode())).source.count("S.hashes") == 1
