"""Action profiles over P4Runtime: members and groups, written and read."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import GroupMember, ProfileGroup, ProfileMember
from softswitch.p4runtime.actions import (
    check_weights,
    decode_member,
    encode_call,
    encode_members,
    watched_port,
)
from softswitch.p4runtime.p4info import PipelineInfo, ProfileInfo
from softswitch.p4runtime.status import invalid

_Update = p4r.Update


def write_member(
    device: Device,
    info: PipelineInfo,
    kind: p4r.Update.Type.ValueType,
    message: p4r.ActionProfileMember,
) -> None:
    """Insert, modify or delete a member; raises RefusedError, or what the device raises."""
    profile = info.profile(message.action_profile_id)
    if kind == _Update.DELETE:
        device.delete_member(profile.name, message.member_id)
        return
    action = decode_member(profile, message.action)
    member = ProfileMember(profile.name, message.member_id, action)
    if kind == _Update.INSERT:
        device.insert_member(member)
    else:
        device.modify_member(member)


def write_group(
    device: Device,
    info: PipelineInfo,
    kind: p4r.Update.Type.ValueType,
    message: p4r.ActionProfileGroup,
) -> None:
    """Insert, modify or delete a group; raises RefusedError, or what the device raises."""
    profile = info.profile(message.action_profile_id)
    if kind == _Update.DELETE:
        device.delete_group(profile.name, message.group_id)
        return
    what = f"action profile {profile.name}, group {message.group_id}"
    if message.max_size < 0:
        raise invalid(f"{what}: Group max_size cannot be less than 0")
    if 0 < profile.max_group_size < message.max_size:
        raise invalid(
            f"{what}: Group max_size cannot exceed static max_group_size (from P4Info): "
            f"{message.max_size} > {profile.max_group_size}"
        )
    if any(member.weight <= 0 for member in message.members):
        raise invalid(f"{what}: Member weight must be a positive integer value")
    if kind == _Update.INSERT:
        device.insert_group(_group(profile, message, message.max_size))
    else:
        device.modify_group(_group(profile, message, _max_size(device, profile, message)))


def _max_size(device: Device, profile: ProfileInfo, message: p4r.ActionProfileGroup) -> int:
    """Return the size of a group to modify: one left out is the one it was created with."""
    if message.max_size:
        return message.max_size
    return next(
        (g.max_size for g in device.read_groups(profile.name) if g.group == message.group_id), 0
    )


def _group(profile: ProfileInfo, message: p4r.ActionProfileGroup, max_size: int) -> ProfileGroup:
    total = sum(member.weight for member in message.members)
    check_weights(profile, total, max_size or profile.max_group_size)
    return ProfileGroup(
        profile.name,
        message.group_id,
        tuple(GroupMember(m.member_id, m.weight, watched_port(m)) for m in message.members),
        max_size,
    )


def read_members(
    device: Device, info: PipelineInfo, request: p4r.ActionProfileMember
) -> Iterator[p4r.Entity]:
    """Yield the members asked for; profile 0 is all profiles, member 0 all members."""
    for profile in _profiles(info, request.action_profile_id):
        for member in device.read_members(profile.name):
            if request.member_id in (0, member.member):
                yield p4r.Entity(
                    action_profile_member=p4r.ActionProfileMember(
                        action_profile_id=profile.id,
                        member_id=member.member,
                        action=encode_call(info, member.action),
                    )
                )


def read_groups(
    device: Device, info: PipelineInfo, request: p4r.ActionProfileGroup
) -> Iterator[p4r.Entity]:
    """Yield the groups asked for; profile 0 is all profiles, group 0 all groups."""
    for profile in _profiles(info, request.action_profile_id):
        for group in device.read_groups(profile.name):
            if request.group_id in (0, group.group):
                message = p4r.ActionProfileGroup(
                    action_profile_id=profile.id, group_id=group.group, max_size=group.max_size
                )
                yield p4r.Entity(action_profile_group=encode_members(message, group.members))


def _profiles(info: PipelineInfo, profile_id: int) -> list[ProfileInfo]:
    if profile_id == 0:
        return list(info.profiles.values())
    return [info.profile(profile_id)]
