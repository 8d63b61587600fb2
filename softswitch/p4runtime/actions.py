"""What an entry does, an action or a reference into a profile: messages <-> values. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from finsy.proto import p4r

from softswitch.entries import (
    ActionCall,
    EntryAction,
    GroupMember,
    GroupRef,
    MemberRef,
    OneShot,
    WeightedAction,
)
from softswitch.p4runtime.p4info import ActionInfo, PipelineInfo, ProfileInfo, TableInfo
from softswitch.p4runtime.status import RefusedError, invalid, unimplemented
from softswitch.p4runtime.values import decode, encode


def decode_default(table: TableInfo, message: p4r.TableAction) -> ActionCall:
    """Return the action of the default entry of `table`.

    Raises RefusedError: INVALID_ARGUMENT for an action that the table does not have, or other
    parameters than it takes; PERMISSION_DENIED for one that the program keeps for entries.
    """
    if message.WhichOneof("type") != "action":
        raise invalid(f"table {table.name}: Cannot provide indirect action for direct table")
    use = table.actions.get(message.action.action_id)
    if use is None:
        raise _unknown_action(table, message.action.action_id)
    if not use.as_default:
        raise RefusedError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"table {table.name}: Cannot use TABLE_ONLY action {use.action.name} as default action",
        )
    return _decode_call(f"table {table.name}", use.action, message.action)


def decode_action(info: PipelineInfo, table: TableInfo, message: p4r.TableAction) -> EntryAction:
    """Return the action of an entry of `table`; errors as `decode_default`."""
    kind = message.WhichOneof("type")
    if table.profile is not None:
        return _decode_indirect(info.profile(table.profile), table, message, kind)
    if kind != "action":
        raise invalid(f"table {table.name}: Cannot provide indirect action for direct table")
    use = table.actions.get(message.action.action_id)
    if use is None:
        raise _unknown_action(table, message.action.action_id)
    if not use.in_entries:
        raise RefusedError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"table {table.name}: Cannot use DEFAULT_ONLY action {use.action.name} in table entry",
        )
    return _decode_call(f"table {table.name}", use.action, message.action)


def decode_member(profile: ProfileInfo, message: p4r.Action) -> ActionCall:
    """Return the action of a member of `profile`; raises RefusedError (INVALID_ARGUMENT)."""
    action = profile.actions.get(message.action_id)
    if action is None:
        raise invalid(
            f"action profile {profile.name}: Invalid action for action profile: id "
            f"{message.action_id:#010x}"
        )
    return _decode_call(f"action profile {profile.name}", action, message)


def _unknown_action(table: TableInfo, action_id: int) -> RefusedError:
    return invalid(f"table {table.name}: Invalid action for table: id {action_id:#010x}")


def _decode_indirect(
    profile: ProfileInfo, table: TableInfo, message: p4r.TableAction, kind: str | None
) -> EntryAction:
    match kind:
        case "action_profile_member_id":
            return MemberRef(message.action_profile_member_id)
        case "action_profile_group_id":
            return GroupRef(message.action_profile_group_id)
        case "action_profile_action_set":
            return _decode_one_shot(profile, message.action_profile_action_set)
        case "action":
            raise invalid(
                f"table {table.name}: Cannot provide direct action for indirect table: give a "
                f"member or a group of {profile.name}, or a set of actions"
            )
        case _:
            raise invalid(f"table {table.name}: Invalid table action type: it is not set")


def _decode_one_shot(profile: ProfileInfo, message: p4r.ActionProfileActionSet) -> OneShot:
    what = f"action profile {profile.name}"
    actions = message.action_profile_actions
    if not actions:
        raise unimplemented(f"{what}: No support for empty action profile groups")
    if any(part.weight <= 0 for part in actions):
        raise invalid(f"{what}: Member weight must be a positive integer value")
    check_weights(profile, sum(part.weight for part in actions), profile.max_group_size)
    return OneShot(
        tuple(
            WeightedAction(decode_member(profile, part.action), part.weight, watched_port(part))
            for part in actions
        )
    )


def check_weights(profile: ProfileInfo, total: int, limit: int) -> None:
    """Raise RefusedError (RESOURCE_EXHAUSTED) if a group's weights sum to more than `limit` > 0."""
    if 0 < limit < total:
        raise RefusedError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"action profile {profile.name}: Sum of member weights exceeds maximum group size: "
            f"{total} > {limit}",
        )


def watched_port(message: p4r.ActionProfileAction | p4r.ActionProfileGroup.Member) -> bytes:
    """Return the port that a member watches, in bytes, whichever way it was written."""
    if message.WhichOneof("watch_kind") == "watch":
        return encode(max(message.watch, 0))
    return message.watch_port


def _decode_call(where: str, action: ActionInfo, message: p4r.Action) -> ActionCall:
    what = f"{where}, action {action.name}"
    given = {param.param_id: param.value for param in message.params}
    wanted = {param.id for param in action.params}
    if len(message.params) != len(wanted) or given.keys() != wanted:
        raise invalid(
            f"{what}: Unexpected action parameters: ids {sorted(given)} given, "
            f"{sorted(wanted)} wanted"
        )
    return ActionCall(
        action.name,
        tuple(
            decode(given[param.id], param.width, f"{what}, parameter {param.name}")
            for param in action.params
        ),
    )


def encode_action(info: PipelineInfo, action: EntryAction) -> p4r.TableAction:
    """Return the message for what an entry does."""
    message = p4r.TableAction()
    match action:
        case ActionCall():
            message.action.CopyFrom(encode_call(info, action))
        case MemberRef(member):
            message.action_profile_member_id = member
        case GroupRef(group):
            message.action_profile_group_id = group
        case OneShot(parts):
            for part in parts:
                message.action_profile_action_set.action_profile_actions.add(
                    action=encode_call(info, part.action),
                    weight=part.weight,
                    watch_port=part.watch_port or None,
                )
    return message


def encode_call(info: PipelineInfo, call: ActionCall) -> p4r.Action:
    """Return the message for an action call."""
    action = info.action_named[call.name]
    message = p4r.Action(action_id=action.id)
    for param, value in zip(action.params, call.params, strict=True):
        message.params.add(param_id=param.id, value=encode(value))
    return message


def encode_members(
    message: p4r.ActionProfileGroup, members: Iterable[GroupMember]
) -> p4r.ActionProfileGroup:
    """Put the members of a group into its message, and return it."""
    for member in members:
        message.members.add(
            member_id=member.member,
            weight=member.weight,
            watch_port=member.watch_port or None,
        )
    return message
