"""Action profiles: members, groups and one-shot sets, as entries of tables refer to them.

A hash selects among the *handles* of a group in rising order, as bmv2 does: every member has one
handle, and further ones while a group gives it a larger weight; the lowest free number is taken
first. So the same writes make the same choice here and there.
"""

from heapq import heappop, heappush

from softswitch import ir
from softswitch.entries import (
    ActionCall,
    EntryAction,
    GroupMember,
    GroupRef,
    MemberRef,
    OneShot,
    ProfileGroup,
    ProfileMember,
)
from softswitch.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)

Call = tuple[str, tuple[int, ...]]
"""What a member runs: an action by name, and its parameters."""


class Member:
    """One member; generated code reads `call`."""

    __slots__ = ("call", "handles", "uses")

    def __init__(self, call: ActionCall, handle: int) -> None:
        self.call: Call = (call.name, call.params)
        self.handles = [handle]
        self.uses = 0


class Choice:
    """What an entry refers to; generated code reads `members`, one element a share of the hash.

    `action` is what the entry was written with.
    """

    __slots__ = ("action", "members", "uses")

    def __init__(self, action: EntryAction, members: tuple[Member, ...]) -> None:
        self.action = action
        self.members = members
        self.uses = 0


class _Handles:
    """Numbers from 0; the lowest free one is given first."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def take(self) -> int:
        if self._free:
            return heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, handle: int) -> None:
        heappush(self._free, handle)


class Profile:
    """The contents of one action profile."""

    def __init__(self, declared: ir.ActionProfile) -> None:
        self.declared = declared
        self._handles = _Handles()
        self._members: dict[int, Member] = {}
        self._single: dict[int, Choice] = {}
        self._groups: dict[int, ProfileGroup] = {}
        self._choices: dict[int, Choice] = {}
        # of each one-shot set its shares: handle, member, the port that it watches
        self._one_shots: dict[Choice, list[tuple[int, Member, bytes]]] = {}
        self._live: frozenset[int] | None = None

    @property
    def _what(self) -> str:
        return f"action profile '{self.declared.name}'"

    def _manual(self) -> None:
        if self._one_shots:
            raise InvalidArgument(
                f"{self._what} holds one-shot sets: it takes no members or groups"
            )

    # --- members --------------------------------------------------------------------------------

    def insert_member(self, member: int, call: ActionCall) -> None:
        """Add a member."""
        self._manual()
        if member in self._members:
            raise AlreadyExists(f"{self._what} has member {member} already; modify it")
        if self.declared.size and len(self._members) >= self.declared.size:
            raise ResourceExhausted(f"{self._what} is full: {self.declared.size} members")
        self._members[member] = Member(call, self._handles.take())
        self._single[member] = Choice(MemberRef(member), (self._members[member],))

    def modify_member(self, member: int, call: ActionCall) -> None:
        """Give a member another action, at once for every entry and group that has it."""
        self._member(member).call = (call.name, call.params)

    def delete_member(self, member: int) -> None:
        """Remove a member that nothing refers to."""
        found = self._member(member)
        if found.uses or self._single[member].uses:
            raise FailedPrecondition(f"{self._what}: member {member} is in use")
        for handle in found.handles:
            self._handles.give_back(handle)
        del self._members[member], self._single[member]

    def members(self) -> tuple[ProfileMember, ...]:
        """All members, oldest first."""
        return tuple(
            ProfileMember(self.declared.name, number, ActionCall(*found.call))
            for number, found in self._members.items()
        )

    def _member(self, member: int) -> Member:
        found = self._members.get(member)
        if found is None:
            raise NotFound(f"{self._what} has no member {member}")
        return found

    # --- groups ---------------------------------------------------------------------------------

    def insert_group(self, group: ProfileGroup) -> None:
        """Add a group."""
        self._selects()
        self._manual()
        if group.group in self._groups:
            raise AlreadyExists(f"{self._what} has group {group.group} already; modify it")
        self._check(group)
        self._choices[group.group] = Choice(GroupRef(group.group), ())
        self._groups[group.group] = ProfileGroup(group.profile, group.group)
        self._fill(group)

    def modify_group(self, group: ProfileGroup) -> None:
        """Replace the members of a group, in one step."""
        old = self._group(group.group)
        if group.max_size != old.max_size:
            raise InvalidArgument(f"{self._what}: max_size of group {group.group} cannot change")
        self._check(group)
        self._fill(group)

    def delete_group(self, group: int) -> None:
        """Remove a group that no entry refers to."""
        found = self._group(group)
        if self._choices[group].uses:
            raise FailedPrecondition(f"{self._what}: group {group} is in use")
        self._fill(ProfileGroup(found.profile, group, (), found.max_size))
        del self._groups[group], self._choices[group]

    def groups(self) -> tuple[ProfileGroup, ...]:
        """All groups, oldest first."""
        return tuple(self._groups.values())

    def _group(self, group: int) -> ProfileGroup:
        found = self._groups.get(group)
        if found is None:
            raise NotFound(f"{self._what} has no group {group}")
        return found

    def _selects(self) -> None:
        if self.declared.selector is None:
            raise InvalidArgument(f"{self._what} has no selector: it takes no groups")

    def _check(self, group: ProfileGroup) -> None:
        what = f"{self._what}, group {group.group}"
        seen: set[int] = set()
        for entry in group.members:
            if entry.weight <= 0:
                raise InvalidArgument(f"{what}: member {entry.member} needs a weight of 1 or more")
            if entry.member in seen:
                raise InvalidArgument(f"{what}: member {entry.member} comes twice; use its weight")
            seen.add(entry.member)
            self._member(entry.member)
        total = sum(entry.weight for entry in group.members)
        if group.max_size < 0:
            raise InvalidArgument(f"{what}: max_size {group.max_size} is negative")
        if 0 < group.max_size < total:
            raise ResourceExhausted(f"{what}: the weights sum to {total}, above {group.max_size}")

    def _fill(self, group: ProfileGroup) -> None:
        old = {m.member for m in self._groups[group.group].members}
        self._groups[group.group] = group
        weights = {m.member: m.weight for m in group.members}
        for number in sorted(old | weights.keys()):
            member, weight = self._members[number], weights.get(number, 0)
            while len(member.handles) < weight:
                member.handles.append(self._handles.take())
            member.uses += (number in weights) - (number in old)
        self._share(group)
        for number in sorted(old | weights.keys()):
            self._purge(number)

    def _share(self, group: ProfileGroup) -> None:
        """Let a group's hash choose among its members whose ports live, in order of handles."""
        shares = [
            (handle, self._members[entry.member])
            for entry in group.members
            if self._lives(entry.watch_port)
            for handle in self._members[entry.member].handles[: entry.weight]
        ]
        shares.sort(key=lambda share: share[0])
        self._choices[group.group].members = tuple(member for _, member in shares)

    def _share_one_shot(self, choice: Choice) -> None:
        shares = [(h, m) for h, m, port in self._one_shots[choice] if self._lives(port)]
        shares.sort(key=lambda share: share[0])
        choice.members = tuple(member for _, member in shares)

    def _lives(self, watched: bytes) -> bool:
        return not watched or self._live is None or int.from_bytes(watched) in self._live

    def set_live_ports(self, ports: frozenset[int] | None) -> None:
        """Take members that watch other ports out of what hashes choose; None: all ports live.

        They stay in their groups, and come back with their ports (P4Runtime, section 9.2.3).
        """
        self._live = ports
        for group in self._groups.values():
            self._share(group)
        for choice in self._one_shots:
            self._share_one_shot(choice)

    def _purge(self, number: int) -> None:
        member = self._members[number]
        needed = max(
            (m.weight for g in self._groups.values() for m in g.members if m.member == number),
            default=1,
        )
        while len(member.handles) > needed:
            self._handles.give_back(member.handles.pop())

    # --- what entries refer to ------------------------------------------------------------------

    def choice(self, action: EntryAction) -> Choice:
        """What an entry with `action` refers to; `take` it when the entry is stored.

        NotFound for a member or group that is not there; InvalidArgument for another action.
        """
        match action:
            case MemberRef(member=member):
                self._member(member)
                return self._single[member]
            case GroupRef(group=group):
                self._selects()
                self._group(group)
                return self._choices[group]
            case OneShot():
                return self._one_shot(action)
            case ActionCall():
                raise InvalidArgument(
                    f"{self._what}: an entry needs a member, a group or a one-shot set"
                )

    def _one_shot(self, action: OneShot) -> Choice:
        self._selects()
        if self._members or self._groups:
            raise InvalidArgument(
                f"{self._what} holds members or groups: it takes no one-shot sets"
            )
        if any(part.weight <= 0 for part in action.actions):
            raise InvalidArgument(f"{self._what}: a one-shot action needs a weight of 1 or more")
        return Choice(action, ())

    def take(self, choice: Choice) -> None:
        """One more entry refers to `choice`."""
        choice.uses += 1
        if isinstance(choice.action, OneShot) and choice.uses == 1:
            shares: list[tuple[int, Member, bytes]] = []
            for part in choice.action.actions:
                for _ in range(part.weight):
                    handle = self._handles.take()
                    shares.append((handle, Member(part.action, handle), part.watch_port))
            self._one_shots[choice] = shares
            self._share_one_shot(choice)

    def release(self, choice: Choice) -> None:
        """One entry less refers to `choice`."""
        choice.uses -= 1
        if isinstance(choice.action, OneShot) and not choice.uses:
            for handle, _, _ in self._one_shots.pop(choice):
                self._handles.give_back(handle)


__all__ = ["Choice", "GroupMember", "Member", "Profile"]
