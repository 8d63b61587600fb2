"""How queues are set, and the queues of several ports together."""

from pathlib import Path

import pytest

from softswitch.ports.errors import QueueSettingError
from softswitch.ports.queueing import (
    QueueBank,
    QueueSetting,
    check_settings,
    parse_setting,
    read_settings,
)
from softswitch.queued import QueuedPacket
from tests.unit.softswitch.programs import load

SWITCH = load("queues", queues=4)


def packet(port: int, priority: int = 0) -> QueuedPacket:
    (made,) = SWITCH.enqueue(1, bytes([0, priority]) + port.to_bytes(2) + bytes(60))
    return made


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("100", QueueSetting("rate", 100)),
        ("2:100", QueueSetting("rate", 100, 2)),
        ("2:7:0", QueueSetting("rate", 0, 2, 7)),
    ],
)
def test_an_option(text: str, setting: QueueSetting) -> None:
    assert parse_setting("rate", text) == setting


@pytest.mark.parametrize("text", ["", ":", "2:", "x", "-1", "1.5", "1:2:3:4", "٣"])
def test_what_is_no_option(text: str) -> None:
    with pytest.raises(QueueSettingError, match="is no queue depth"):
        parse_setting("depth", text)


def test_a_file_of_commands(tmp_path: Path) -> None:
    path = tmp_path / "queues"
    path.write_text(
        "# as for simple_switch_CLI\nset_queue_rate 10 2 1\n\nset_queue_depth 5 # all\n"
    )
    assert read_settings(path) == (
        QueueSetting("rate", 10, 2, 1),
        QueueSetting("depth", 5),
    )


def test_every_bad_line_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "queues"
    path.write_text(
        "set_queue_rate\nset_queue_rate 1 2 3 4\nport_add veth0 1\nset_queue_depth 1 512\n"
        "set_queue_depth 7\n"
    )
    with pytest.raises(QueueSettingError) as caught:
        read_settings(path)
    said = str(caught.value)
    assert said.count(" line ") == 4
    for text in (
        "line 1: set_queue_rate takes N [PORT [QUEUE]]",
        "line 2: set_queue_rate takes",
        "line 3: 'port_add' is none of set_queue_rate, set_queue_depth",
        "line 4: port 512 of a queue depth is outside 0..511",
    ):
        assert text in said


def test_a_queue_that_is_not_there() -> None:
    check_settings([QueueSetting("rate", 1, 3, 3)], 4)
    with pytest.raises(QueueSettingError, match=r"no queue 4.*0\.\.3; --priority-queues"):
        check_settings([QueueSetting("rate", 1, 3, 4)], 4)


def test_queues_are_off_until_something_asks_for_them() -> None:
    bank = QueueBank(1)
    assert not bank.active
    bank.add(QueueSetting("depth", 3))
    assert bank.active
    bank.offer(packet(1), 0)
    bank.configure(())
    assert bank.active
    assert bank.take(0) is not None
    assert not bank.active
    assert QueueBank(2).active


def test_settings_hold_for_ports_that_come_later_and_later_ones_win() -> None:
    bank = QueueBank(4)
    bank.of(1)
    for setting in (
        QueueSetting("rate", 10),
        QueueSetting("rate", 20, 1),
        QueueSetting("rate", 30, 1, 2),
        QueueSetting("depth", 9, None, 3),
    ):
        bank.add(setting)
    assert [bank.of(1).rate(p) for p in range(4)] == [20, 20, 30, 20]
    assert [bank.of(2).rate(p) for p in range(4)] == [10] * 4
    assert [bank.of(2).depth(p) for p in range(4)] == [64, 64, 64, 9]
    bank.add(QueueSetting("rate", 0))
    assert [bank.of(1).rate(p) for p in range(4)] == [0] * 4
    bank.configure(())
    assert bank.of(1).depth(3) == 64


def test_a_bad_setting_changes_nothing() -> None:
    bank = QueueBank(1, [QueueSetting("rate", 10)])
    with pytest.raises(QueueSettingError):
        bank.add(QueueSetting("rate", 20, 1, 1))
    assert bank.of(1).rate(0) == 10


def test_ports_do_not_wait_for_each_other() -> None:
    bank = QueueBank(4, [QueueSetting("rate", 1, 1)])
    for port in (1, 1, 2, 2):
        bank.offer(packet(port), 0)
    assert bank.next_turn() == 0
    ports = [served.packet.port for served in iter(lambda: bank.take(0), None)]
    assert sorted(ports) == [1, 2, 2]
    assert bank.next_turn() == 1_000_000_000


def test_room_is_told_for_each_queue() -> None:
    bank = QueueBank(4, [QueueSetting("depth", 1)])
    bank.offer(packet(1, 2), 0)
    assert not bank.has_room(packet(1, 2))
    assert bank.has_room(packet(1, 1))
    assert bank.has_room(packet(2, 2))


def test_losses_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    bank = QueueBank(4, [QueueSetting("depth", 1), QueueSetting("rate", 5, 1, 2)])
    for _ in range(3):
        bank.offer(packet(1, 2), 0)
    for _ in range(2):
        bank.tell_losses(lambda port: f" (veth{port})")
    (record,) = caplog.records
    assert record.getMessage() == (
        "Port 1 (veth1): dropped 2 packets that found queue 2 full (2 so far): it holds 1 packets "
        "and serves 5/s"
    )


def test_what_waits_at_a_port_that_goes_is_dropped() -> None:
    bank = QueueBank(4)
    bank.offer(packet(1), 0)
    bank.remove(1)
    bank.remove(3)
    assert bank.take(0) is None
    assert bank.next_turn() is None
