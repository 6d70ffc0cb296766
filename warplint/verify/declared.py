"""What the rule of a finding declares about its proof; where no installed pack has the rule, nothing is proved."""

from __future__ import annotations

from warplint import registry
from warplint.finding import Finding
from warplint.proof import Draw, Experiment, Repair, TapeClaim


def experiment_of(finding: Finding) -> Experiment:
    """The measurement that proves or refutes the finding."""
    rule = registry.rule_of(finding.code)
    return rule.experiment if rule is not None else Experiment.NONE


def repairs_of(finding: Finding) -> frozenset[Repair] | None:
    """The what-if repairs that prove the finding; None: any, at its place."""
    rule = registry.rule_of(finding.code)
    return rule.repairs if rule is not None else None


def claim_of(finding: Finding) -> TapeClaim | None:
    """What a run shows, beside what-if repairs, if the finding is true; None: nothing else."""
    rule = registry.rule_of(finding.code)
    return rule.claim if rule is not None else None


def draws_of(finding: Finding) -> tuple[Draw, ...]:
    """The inputs that the rule asks for: it speaks of points, and of nothing else."""
    rule = registry.rule_of(finding.code)
    return rule.draws if rule is not None else ()
