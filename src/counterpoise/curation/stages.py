"""The stages of a release, each paid for once: kept in a working folder, or asked of the vault."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import counterpoise
from counterpoise.bundle.assemble import derived_seed
from counterpoise.bundle.card import BOUNDED, PROMISED, describe
from counterpoise.bundle.models import model_arrays, read_model
from counterpoise.bundle.persons import PERSONS
from counterpoise.curation.plan import Plan
from counterpoise.curation.weights_share import share_by_rows
from counterpoise.curation.work import Work, require_answers
from counterpoise.errors import CounterpoiseError, MethodError, VaultError
from counterpoise.schema import Schema
from counterpoise.synthesizers import SYNTHESIZERS, Model
from counterpoise.vault import REPLACE, Account, Share, Vault
from counterpoise.weights import WEIGHTERS, WeightModel
from counterpoise.weights.measured import assumed_questions
from counterpoise.weights.protocol import redrawable

NOT_CARRIED = "what was summed for it does not carry it"


def request(plan: Plan, account: Account | None = None) -> dict[str, Any]:
    """What tells one request from another, all of it public."""
    values: dict[str, Any] = {
        "counterpoise": counterpoise.__version__,
        "schema": plan.released.to_dict(),
        "budget": plan.budget.to_dict(),
        "weights": describe(WEIGHTERS, plan.weighter),
    }
    if plan.person is not None:
        # Another column of persons would keep other rows. Its name is the curator's.
        values |= {"person": hashlib.sha256(plan.person.encode()).hexdigest()}
    if account is not None:
        values |= {"account": account.id}
    if plan.synthesizer is not None:
        values |= {"synthesizer": describe(SYNTHESIZERS, plan.synthesizer), "split": plan.split}
        values |= {"fine": plan.cells_share is not None}
    return values


def usable_account(
    account: Account | str | Path | None, plan: Plan, seed: int | None, is_begun: bool = False
) -> Account | None:
    """The account of a request, if it has one; a run with a seed never touches one.

    One that cannot pay for all of it is refused, unless part of it `is_begun` and paid for.
    """
    if account is None:
        return None
    if seed is not None:
        raise VaultError(
            "account: what comes from a seed is not private, and is never charged; leave out the "
            "seed, or the account"
        )
    found = Account.of(account)
    found.require_terms(plan.budget)
    if not is_begun:
        found.require_room(plan.budget.whole_beside(plan.threshold_delta), plan.threshold_delta)
    return found


def open_vault(
    table: Any, plan: Plan, kept: Work, seed: int | None, account: Account | None = None
) -> Vault:
    """The vault, with the schema, the charges and the answers that earlier work has got to."""
    settled = kept.notes("domain")
    schema = plan.schema
    if settled is not None:
        schema = Schema.from_dict(settled["schema"]).read_as(plan.schema)
    require_answers(kept)
    kept.require_same_table(table)
    if kept.journal is not None and (charged := len(kept.journal.ledger().spends)):
        # Noise must not come twice, even where it comes from a seed.
        seed = derived_seed(seed, 2 + charged)
    vault = Vault(
        table,
        schema,
        plan.budget,
        seed=seed,
        journal=kept.journal,
        person=plan.person,
        account=account,
    )
    _require_rows(vault, plan, kept)
    return vault


def _require_rows(vault: Vault, plan: Plan, kept: Work) -> None:
    """Refuse, before any charge, methods that need the rows themselves where they stay away.

    And another number of rows than an earlier run had, where that is public.
    """
    rooms: tuple[tuple[Any, Any], ...] = (
        (SYNTHESIZERS, plan.synthesizer),
        (WEIGHTERS, plan.weighter),
    )
    try:
        for registry, method in rooms:
            if getattr(method, "needs_rows", False):
                vault.require_rows(registry.name_of(method))
        if kept.folder is not None and plan.budget.neighbours is REPLACE:
            kept.require_same_table(rows=vault.total().value)
    except CounterpoiseError:
        vault.close()
        raise


def count_persons(vault: Vault, plan: Plan, kept: Work) -> dict[str, Any]:
    """The card's line on how many persons have more rows than are kept; none if nobody asks.

    An earlier run's answer is in its journal, until the domain is done, and then in its notes.
    """
    if plan.persons_share is None:
        return {}
    found = (kept.notes("domain") or {}).get(PERSONS)
    if found is None:
        vault.ledger.stage = "persons"
        answer = vault.persons(plan.persons_share)
        found = {name: getattr(answer, name) for name in ("within", "beyond", "deviation")}
    return {PERSONS: found}


def described_people(vault: Vault) -> dict[str, Any]:
    """The card's lines on who is protected by what, and on the account that paid."""
    billed = vault.charged_to
    lines = {"person": BOUNDED if vault.bounds_people else PROMISED}
    return lines if billed is None else {**lines, "account": billed}


def settle_schema(vault: Vault, plan: Plan, kept: Work, persons: Mapping[str, Any]) -> None:
    """Pay for what the schema leaves open, unless that is done; `persons` is noted beside it."""
    if kept.notes("domain") is not None:
        return
    vault.ledger.stage = "domain"
    if plan.domain_share is not None:
        vault.learn_domain(plan.domain_share, plan.threshold_delta)
    if plan.cells_share is not None:
        vault.choose_cells(plan.cells_share, plan.rows_share)
    elif plan.chooses_bins:
        vault.choose_bins(plan.rows_share)
    rows = None if vault.counted_rows is None else vault.counted_rows.value
    kept.keep("domain", notes={"schema": vault.schema.to_dict(), "rows": rows, **persons})


def settle_shares(vault: Vault, plan: Plan, kept: Work) -> Plan:
    """The plan with the weights' share by the number of rows, where that is known by now."""
    if not plan.splits_by_rows:
        return plan
    rows: int | None
    if plan.budget.neighbours is REPLACE:
        rows = vault.total().value
    elif vault.counted_rows is not None:
        rows = vault.counted_rows.value
    else:
        rows = (kept.notes("domain") or {}).get("rows")
    return plan if rows is None else share_by_rows(plan, vault.schema, rows)


def fit_synthesizer(vault: Vault, plan: Plan, kept: Work) -> Model:
    """The synthesizer's model, kept or fitted now."""
    method = plan.synthesizer
    assert method is not None
    arrays = kept.arrays("synthesizer")
    if arrays is not None:
        name = SYNTHESIZERS.name_of(method)
        found: Model = read_model(SYNTHESIZERS, name, vault.schema, arrays, private=vault.private)
        return found
    vault.ledger.stage = "synthesizer"
    model = method.fit(vault, _synthesizer_share(vault.schema, plan))
    _keep_model(kept, "synthesizer", method, model)
    return model


def _synthesizer_share(schema: Schema, plan: Plan) -> Share:
    """The synthesizer's share, with that of fine cells where these were not asked for."""
    share, unspent = plan.synthesizer_share, plan.cells_share
    assert share is not None
    if unspent is None or any(column.shape or column.grouping for column in schema):
        return share
    return Share(share.amount + unspent.amount, share.pure)


def fit_weights(
    vault: Vault, synthetic: Any, plan: Plan, kept: Work, synthesizer: Model | None = None
) -> WeightModel:
    """The weights' model, kept or fitted now; `synthesizer` is what the rows were drawn from."""
    arrays = kept.arrays("weights")
    if arrays is not None:
        name = WEIGHTERS.name_of(plan.weighter)
        found: WeightModel = read_model(WEIGHTERS, name, vault.schema, arrays)
        return found
    vault.ledger.stage = "weights"
    # Some ask for a critic that the model has, others what another draw of it would have made.
    asks_critic = getattr(plan.weighter, "needs_critic", False)
    made_by: Any = synthesizer if asks_critic else redrawable(synthesizer)
    model = plan.weighter.fit(vault, synthetic, plan.weights_share, made_by)
    _keep_model(kept, "weights", plan.weighter, model)
    return model


def described_questions(
    plan: Plan, model: WeightModel, schema: Schema, synthesizer: Model | None = None
) -> dict[str, Any]:
    """The card's lines on what was asked in advance, with what stood in the way; none if nothing.

    A question that the synthetic rows cannot answer is public knowledge, as they are; so is
    that noise of a known law, or weights that did not reach it, left little of what was summed.
    """
    untold = dict.fromkeys(plan.questions, "the chosen weights take no questions")
    reasons = getattr(model, "not_asked", untold)
    assumed = assumed_questions(plan.questions, schema, synthesizer, model)
    stood = {**dict.fromkeys(assumed, NOT_CARRIED), **reasons}
    lines = [
        {"question": question, "measured": question not in stood}
        | ({"reason": stood[question]} if question in stood else {})
        | ({"assumed": round(assumed[question], 2)} if question in assumed else {})
        for question in plan.questions
    ]
    return {"questions": lines} if lines else {}


def _keep_model(kept: Work, stage: str, method: Any, model: Any) -> None:
    """Keep a stage; one whose model cannot be saved is fitted again, to the same answers."""
    if kept.folder is None:
        return
    registry: Any = SYNTHESIZERS if stage == "synthesizer" else WEIGHTERS
    try:
        arrays = model_arrays(registry, method, model)
    except MethodError:
        return
    kept.keep(stage, arrays)
