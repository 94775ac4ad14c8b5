"""The control plane's operations on what people and webhooks and answers are to do."""

from __future__ import annotations

from dialsim.sandbox.control.fault_endpoints import FaultState
from dialsim.sandbox.control.people_endpoints import ScriptedNumber
from dialsim.sandbox.description import failures as fail
from dialsim.sandbox.description.operation import Operation, link
from dialsim.sandbox.fault_order import FaultOrder

_FAULT = (
    {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The fault's number, from 1.",
        "schema": {"type": "integer", "minimum": 1},
    },
)

PEOPLE_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/people",
        "listScripts",
        "List the scripts of phone numbers",
        "What is left of them, by number.",
        answer=list[ScriptedNumber],
        failures=fail.GUARDED,
    ),
    Operation(
        "post",
        "/_dialsim/people",
        "scriptNumber",
        "Script a phone number",
        "The next calls to the number do what the script says (P6).",
        answer=ScriptedNumber,
        body=ScriptedNumber,
        failures=(*fail.BODY, fail.NOT_KEPT),
    ),
)
FAULT_OPERATIONS = (
    Operation(
        "get",
        "/_dialsim/faults",
        "listFaults",
        "List the faults",
        "Spent ones too, until they are cleared.",
        answer=list[FaultState],
        failures=fail.GUARDED,
    ),
    Operation(
        "post",
        "/_dialsim/faults",
        "addFault",
        "Have something go wrong",
        "Strikes the next ones that it meets, and is spent.",
        answer=FaultState,
        status=201,
        body=FaultOrder,
        failures=(*fail.BODY, fail.TOO_MANY_FAULTS, fail.NOT_KEPT),
        links={"itself": link("getFault", "id", "id"), "itsEnd": link("clearFault", "id", "id")},
    ),
    Operation(
        "delete",
        "/_dialsim/faults",
        "clearFaults",
        "Clear all faults",
        "Answers those that were cleared; nothing more is struck.",
        answer=list[FaultState],
        failures=(*fail.GUARDED, fail.NOT_KEPT),
    ),
    Operation(
        "get",
        "/_dialsim/faults/{id}",
        "getFault",
        "Get a fault",
        "What was asked for, and what became of it.",
        answer=FaultState,
        parameters=_FAULT,
        failures=(*fail.GUARDED, fail.NO_FAULT),
    ),
    Operation(
        "delete",
        "/_dialsim/faults/{id}",
        "clearFault",
        "Clear a fault",
        "It strikes no more, and its number is not used again.",
        answer=FaultState,
        parameters=_FAULT,
        failures=(*fail.GUARDED, fail.NO_FAULT, fail.NOT_KEPT),
    ),
)
