"""Asset checks: what must hold after a sweep, verified again and shown with its numbers.

Belongs here: binding the rules of ``memory_assets.verification`` to assets.
Does not belong here: the rules, and enforcing them: a blocking check stops only what follows in the same run, so every
rule is enforced where it matters, in the gates, the plan validator and the guarded writer.
https://docs.dagster.io/guides/test/asset-checks
"""

import contextlib

import dagster as dg

from memory_assets import verification
from memory_assets.metadata import numbers_only
from memory_assets.verification import Finding, Rule
from recall_runtime.agent import Agent
from recall_runtime.storage.schema import read_state
from resources.agents import AgentsResource
from resources.clock import ClockResource

# rule, asset it is shown on, whether it stops the rest of the run
_CHECKS: tuple[tuple[Rule, tuple[str, str], bool], ...] = (
    (verification.no_untrusted_eligible, ("dreaming", "gate_scores"), True),
    (verification.no_system_eligible, ("dreaming", "gate_scores"), True),
    (verification.session_kind_gated, ("dreaming", "gate_scores"), True),
    (verification.no_recall_loop, ("dreaming", "gate_scores"), True),
    (verification.within_budget, ("curated", "memory_md"), False),
    (verification.bounded_loss, ("curated", "memory_md"), False),
    (verification.anchors_resolve, ("curated", "memory_md"), False),
    (verification.user_md_imperative, ("curated", "user_md"), False),
    (verification.accounting_adds_up, ("dreaming", "staged_candidates"), False),
    (verification.input_read, ("episodic", "memory_index"), False),
)


def checks_of(agent_id: str) -> list[dg.AssetChecksDefinition]:
    """Return the checks of ``agent_id``."""
    return [_check(agent_id, rule, path, blocking=blocking) for rule, path, blocking in _CHECKS]


def _check(agent_id: str, rule: Rule, path: tuple[str, str], *, blocking: bool) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=dg.AssetKey([agent_id, *path]), name=rule.__name__, blocking=blocking, description=_first_line(rule)
    )
    def check(agents: AgentsResource, clock: ClockResource) -> dg.AssetCheckResult:
        return result_of(verified(rule, agents.open(agent_id, clock.clock())))

    return check


def verified(rule: Rule, agent: Agent) -> Finding:
    """Return the finding of ``rule`` on the present state; before the first sweep there is nothing to find."""
    if not agent.folders.state_db.exists():
        return Finding(passed=True)
    with contextlib.closing(read_state(agent.folders.state_db)) as state:
        return rule(agent, state)


def result_of(finding: Finding) -> dg.AssetCheckResult:
    """Return ``finding`` as the result of a check; numbers get a trend plot in the UI."""
    return dg.AssetCheckResult(
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=numbers_only({"violations": finding.violations} | finding.numbers),
    )


def _first_line(rule: Rule) -> str:
    return (rule.__doc__ or "").strip().splitlines()[0]
