from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Choice(_message.Message):
    __slots__ = ("strategy", "k", "blue", "given")
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    BLUE_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    strategy: str
    k: int
    blue: _containers.RepeatedScalarFieldContainer[str]
    given: bool
    def __init__(self, strategy: _Optional[str] = ..., k: _Optional[int] = ..., blue: _Optional[_Iterable[str]] = ..., given: _Optional[bool] = ...) -> None: ...

class StartJobRequest(_message.Message):
    __slots__ = ("op", "chunks", "seed", "choice", "window", "workers", "on_worker_loss")
    OP_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    ON_WORKER_LOSS_FIELD_NUMBER: _ClassVar[int]
    op: str
    chunks: int
    seed: int
    choice: Choice
    window: int
    workers: _containers.RepeatedScalarFieldContainer[str]
    on_worker_loss: str
    def __init__(self, op: _Optional[str] = ..., chunks: _Optional[int] = ..., seed: _Optional[int] = ..., choice: _Optional[_Union[Choice, _Mapping]] = ..., window: _Optional[int] = ..., workers: _Optional[_Iterable[str]] = ..., on_worker_loss: _Optional[str] = ...) -> None: ...

class ReallocateRequest(_message.Message):
    __slots__ = ("job", "choice", "root")
    JOB_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    job: int
    choice: Choice
    root: str
    def __init__(self, job: _Optional[int] = ..., choice: _Optional[_Union[Choice, _Mapping]] = ..., root: _Optional[str] = ...) -> None: ...

class RejoinRequest(_message.Message):
    __slots__ = ("job", "workers")
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    job: int
    workers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job: _Optional[int] = ..., workers: _Optional[_Iterable[str]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("job", "epoch", "strategy", "k", "blue", "congestion", "total_congestion", "first_chunk", "inserted", "deleted", "installed_after", "first_chunk_after", "seconds", "full", "root", "was", "steps", "came_back")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    BLUE_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CONGESTION_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHUNK_FIELD_NUMBER: _ClassVar[int]
    INSERTED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_AFTER_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHUNK_AFTER_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    WAS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    CAME_BACK_FIELD_NUMBER: _ClassVar[int]
    job: int
    epoch: int
    strategy: str
    k: int
    blue: _containers.RepeatedScalarFieldContainer[str]
    congestion: str
    total_congestion: str
    first_chunk: int
    inserted: int
    deleted: int
    installed_after: float
    first_chunk_after: float
    seconds: float
    full: _containers.RepeatedScalarFieldContainer[str]
    root: str
    was: int
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    came_back: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job: _Optional[int] = ..., epoch: _Optional[int] = ..., strategy: _Optional[str] = ..., k: _Optional[int] = ..., blue: _Optional[_Iterable[str]] = ..., congestion: _Optional[str] = ..., total_congestion: _Optional[str] = ..., first_chunk: _Optional[int] = ..., inserted: _Optional[int] = ..., deleted: _Optional[int] = ..., installed_after: _Optional[float] = ..., first_chunk_after: _Optional[float] = ..., seconds: _Optional[float] = ..., full: _Optional[_Iterable[str]] = ..., root: _Optional[str] = ..., was: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., came_back: _Optional[_Iterable[str]] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("name", "seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    seconds: float
    def __init__(self, name: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class StopJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: int
    def __init__(self, job: _Optional[int] = ...) -> None: ...

class StopJobReply(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobStatus]
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobStatus, _Mapping]]] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchStatusRequest(_message.Message):
    __slots__ = ("seconds",)
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    seconds: float
    def __init__(self, seconds: _Optional[float] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("topology", "target", "controller", "standbys", "switches", "jobs", "links", "predicted_congestion", "measured_congestion", "roots", "cut_links", "lanes")
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    STANDBYS_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_CONGESTION_FIELD_NUMBER: _ClassVar[int]
    MEASURED_CONGESTION_FIELD_NUMBER: _ClassVar[int]
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    CUT_LINKS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    topology: str
    target: str
    controller: ControllerStatus
    standbys: _containers.RepeatedCompositeFieldContainer[ControllerStatus]
    switches: _containers.RepeatedCompositeFieldContainer[SwitchStatus]
    jobs: _containers.RepeatedCompositeFieldContainer[JobStatus]
    links: _containers.RepeatedCompositeFieldContainer[LinkStatus]
    predicted_congestion: str
    measured_congestion: float
    roots: _containers.RepeatedScalarFieldContainer[str]
    cut_links: _containers.RepeatedCompositeFieldContainer[CutLink]
    lanes: int
    def __init__(self, topology: _Optional[str] = ..., target: _Optional[str] = ..., controller: _Optional[_Union[ControllerStatus, _Mapping]] = ..., standbys: _Optional[_Iterable[_Union[ControllerStatus, _Mapping]]] = ..., switches: _Optional[_Iterable[_Union[SwitchStatus, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[JobStatus, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[LinkStatus, _Mapping]]] = ..., predicted_congestion: _Optional[str] = ..., measured_congestion: _Optional[float] = ..., roots: _Optional[_Iterable[str]] = ..., cut_links: _Optional[_Iterable[_Union[CutLink, _Mapping]]] = ..., lanes: _Optional[int] = ...) -> None: ...

class CutLink(_message.Message):
    __slots__ = ("link", "sender", "receiver", "lost", "text")
    LINK_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    link: str
    sender: str
    receiver: str
    lost: int
    text: str
    def __init__(self, link: _Optional[str] = ..., sender: _Optional[str] = ..., receiver: _Optional[str] = ..., lost: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class ControllerStatus(_message.Message):
    __slots__ = ("pid", "election_id", "uptime")
    PID_FIELD_NUMBER: _ClassVar[int]
    ELECTION_ID_FIELD_NUMBER: _ClassVar[int]
    UPTIME_FIELD_NUMBER: _ClassVar[int]
    pid: int
    election_id: int
    uptime: float
    def __init__(self, pid: _Optional[int] = ..., election_id: _Optional[int] = ..., uptime: _Optional[float] = ...) -> None: ...

class SwitchStatus(_message.Message):
    __slots__ = ("name", "device_id", "address", "state", "detail", "blue_for", "capacity", "in_tree", "slots_used")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    BLUE_FOR_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    IN_TREE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_id: int
    address: str
    state: str
    detail: str
    blue_for: _containers.RepeatedScalarFieldContainer[int]
    capacity: int
    in_tree: bool
    slots_used: int
    def __init__(self, name: _Optional[str] = ..., device_id: _Optional[int] = ..., address: _Optional[str] = ..., state: _Optional[str] = ..., detail: _Optional[str] = ..., blue_for: _Optional[_Iterable[int]] = ..., capacity: _Optional[int] = ..., in_tree: _Optional[bool] = ..., slots_used: _Optional[int] = ...) -> None: ...

class JobStatus(_message.Message):
    __slots__ = ("job", "op", "phase", "epoch", "strategy", "k", "blue", "congestion", "workers", "window", "slot_base", "chunks", "completed", "correct", "retransmissions", "waits_for", "detail", "reallocations", "seed", "links", "root", "goes_on_as", "stuck", "left_out", "on_worker_loss", "avoids", "not_compared", "came_back")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    BLUE_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    SLOT_BASE_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    CORRECT_FIELD_NUMBER: _ClassVar[int]
    RETRANSMISSIONS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    REALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    GOES_ON_AS_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    ON_WORKER_LOSS_FIELD_NUMBER: _ClassVar[int]
    AVOIDS_FIELD_NUMBER: _ClassVar[int]
    NOT_COMPARED_FIELD_NUMBER: _ClassVar[int]
    CAME_BACK_FIELD_NUMBER: _ClassVar[int]
    job: int
    op: str
    phase: str
    epoch: int
    strategy: str
    k: int
    blue: _containers.RepeatedScalarFieldContainer[str]
    congestion: str
    workers: int
    window: int
    slot_base: int
    chunks: int
    completed: int
    correct: bool
    retransmissions: int
    waits_for: str
    detail: str
    reallocations: int
    seed: int
    links: _containers.RepeatedCompositeFieldContainer[LinkTotal]
    root: str
    goes_on_as: int
    stuck: StuckChunk
    left_out: _containers.RepeatedScalarFieldContainer[str]
    on_worker_loss: str
    avoids: _containers.RepeatedScalarFieldContainer[str]
    not_compared: str
    came_back: _containers.RepeatedCompositeFieldContainer[Rejoined]
    def __init__(self, job: _Optional[int] = ..., op: _Optional[str] = ..., phase: _Optional[str] = ..., epoch: _Optional[int] = ..., strategy: _Optional[str] = ..., k: _Optional[int] = ..., blue: _Optional[_Iterable[str]] = ..., congestion: _Optional[str] = ..., workers: _Optional[int] = ..., window: _Optional[int] = ..., slot_base: _Optional[int] = ..., chunks: _Optional[int] = ..., completed: _Optional[int] = ..., correct: _Optional[bool] = ..., retransmissions: _Optional[int] = ..., waits_for: _Optional[str] = ..., detail: _Optional[str] = ..., reallocations: _Optional[int] = ..., seed: _Optional[int] = ..., links: _Optional[_Iterable[_Union[LinkTotal, _Mapping]]] = ..., root: _Optional[str] = ..., goes_on_as: _Optional[int] = ..., stuck: _Optional[_Union[StuckChunk, _Mapping]] = ..., left_out: _Optional[_Iterable[str]] = ..., on_worker_loss: _Optional[str] = ..., avoids: _Optional[_Iterable[str]] = ..., not_compared: _Optional[str] = ..., came_back: _Optional[_Iterable[_Union[Rejoined, _Mapping]]] = ...) -> None: ...

class Rejoined(_message.Message):
    __slots__ = ("worker", "first_chunk")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHUNK_FIELD_NUMBER: _ClassVar[int]
    worker: str
    first_chunk: int
    def __init__(self, worker: _Optional[str] = ..., first_chunk: _Optional[int] = ...) -> None: ...

class StuckChunk(_message.Message):
    __slots__ = ("chunk", "switch", "workers", "cause", "text", "link")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    chunk: int
    switch: str
    workers: _containers.RepeatedScalarFieldContainer[str]
    cause: str
    text: str
    link: str
    def __init__(self, chunk: _Optional[int] = ..., switch: _Optional[str] = ..., workers: _Optional[_Iterable[str]] = ..., cause: _Optional[str] = ..., text: _Optional[str] = ..., link: _Optional[str] = ...) -> None: ...

class LinkTotal(_message.Message):
    __slots__ = ("switch", "messages", "expected")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    switch: str
    messages: int
    expected: int
    def __init__(self, switch: _Optional[str] = ..., messages: _Optional[int] = ..., expected: _Optional[int] = ...) -> None: ...

class LinkStatus(_message.Message):
    __slots__ = ("switch", "parent", "rate", "blue", "predicted", "measured", "messages", "expected", "retransmitted", "root")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    BLUE_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    RETRANSMITTED_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    switch: str
    parent: str
    rate: str
    blue: bool
    predicted: int
    measured: float
    messages: int
    expected: int
    retransmitted: int
    root: str
    def __init__(self, switch: _Optional[str] = ..., parent: _Optional[str] = ..., rate: _Optional[str] = ..., blue: _Optional[bool] = ..., predicted: _Optional[int] = ..., measured: _Optional[float] = ..., messages: _Optional[int] = ..., expected: _Optional[int] = ..., retransmitted: _Optional[int] = ..., root: _Optional[str] = ...) -> None: ...

class GetCountersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Counters(_message.Message):
    __slots__ = ("switches", "links")
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    switches: _containers.RepeatedCompositeFieldContainer[SwitchCounters]
    links: _containers.RepeatedCompositeFieldContainer[LinkStatus]
    def __init__(self, switches: _Optional[_Iterable[_Union[SwitchCounters, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[LinkStatus, _Mapping]]] = ...) -> None: ...

class SwitchCounters(_message.Message):
    __slots__ = ("name", "outcomes")
    class OutcomesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    name: str
    outcomes: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., outcomes: _Optional[_Mapping[str, int]] = ...) -> None: ...

class GetSwitchRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
