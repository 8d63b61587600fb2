"""The action profiles of a running program: members and groups.

`program.profiles` lists them, `program.tables[name].profile` tells a table's; whether a profile
selects among groups tells `program.profiles[name].selector`.
"""

from abc import ABC, abstractmethod

from softswitch.control import TableControl
from softswitch.entries import ProfileGroup, ProfileMember


class ProfileControl(ABC):
    """Base of `Device`."""

    @property
    @abstractmethod
    def _tables(self) -> TableControl:
        """Tables of the running program; FailedPrecondition before a load."""

    def insert_member(self, member: ProfileMember) -> None:
        """AlreadyExists, ResourceExhausted, InvalidArgument, NotFound (no such profile)."""
        self._tables.check_member(member)
        self._tables.profile(member.profile).insert_member(member.member, member.action)

    def modify_member(self, member: ProfileMember) -> None:
        """NotFound, InvalidArgument. All entries and groups with the member change at once."""
        self._tables.check_member(member)
        self._tables.profile(member.profile).modify_member(member.member, member.action)

    def delete_member(self, profile: str, member: int) -> None:
        """NotFound; FailedPrecondition while a group or an entry has it."""
        self._tables.profile(profile).delete_member(member)

    def read_members(self, profile: str) -> tuple[ProfileMember, ...]:
        """All members, oldest first; those of one-shot sets have no id and are not among them."""
        return self._tables.profile(profile).members()

    def insert_group(self, group: ProfileGroup) -> None:
        """AlreadyExists, InvalidArgument, NotFound (a member), ResourceExhausted (`max_size`).

        A group may be empty; entries that refer to an empty group hit and do nothing.
        """
        self._tables.profile(group.profile).insert_group(group)

    def modify_group(self, group: ProfileGroup) -> None:
        """Replace the members of a group in one step; errors as `insert_group`, and NotFound."""
        self._tables.profile(group.profile).modify_group(group)

    def delete_group(self, profile: str, group: int) -> None:
        """NotFound; FailedPrecondition while an entry has it. Its members stay."""
        self._tables.profile(profile).delete_group(group)

    def read_groups(self, profile: str) -> tuple[ProfileGroup, ...]:
        """All groups, oldest first."""
        return self._tables.profile(profile).groups()
