//! Searches for witnesses: objects that the old schema accepts, and that the new schema rejects or
//! reads differently.

mod budget;
mod defaults;
mod edges;
mod literals;
mod make;
mod random;
mod stored;
mod texts;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_judge::{Body, Definition, Failure, FieldError, FieldValidation, Judge, Verdict};
use rbuilder_kubernetes::gvk;
use rbuilder_schema::{Cel, Schema};
use serde_json::{Value, json};

pub use self::budget::Budget;
use self::budget::{count_nodes, count_values};
pub(crate) use self::edges::edges;
use self::literals::literals;
pub(crate) use self::make::Candidate;
use self::make::Maker;
pub use self::stored::{StoredJudge, StoredVerdict};
use self::texts::Texts;
use crate::change::{Effect, Witness};
use crate::level::Party;
use crate::path::{Path, Step};
use crate::schema::Alone;

/// Number of random surroundings to try, some of which the old schema's alternatives and rules may
/// reject.
const ROUNDS: u64 = 10;

/// Larger, because most random values don't violate a rule.
const RULE_ROUNDS: u64 = 240;

/// Ends a search after this many objects accepted by the old schema.
const MOST_ACCEPTED: usize = 200;

const NAMESPACE: &str = "default";

pub(crate) struct Pair<'b> {
    pub(crate) old: Judge,
    pub(crate) new: Judge,
    budget: &'b Budget,
    texts: Texts,
}

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) witness: Option<Witness>,
    /// Parties affected by the witness.
    pub(crate) parties: BTreeSet<Party>,
    pub(crate) accepted: usize,
    /// Whether the search ran out of budget.
    pub(crate) is_cut_short: bool,
}

pub(crate) struct Goal<'g> {
    path: &'g Path,
    /// Whether reading an accepted object differently counts as an effect.
    reads: bool,
    /// If set, only errors of this rule count.
    rule: Option<&'g Cel>,
    /// Whether the default changes. Any rule may see the value, so every error counts. A rejected
    /// object is a better witness than one that is read differently.
    is_default: bool,
    /// Whether to write the status as part of the object instead of through the subresource.
    writes_whole: bool,
    /// Whether to write the status through the subresource although the path is outside of it.
    through_status: bool,
    /// The change in question. The new schema usually has others as well, which don't count.
    alone: Option<&'g Alone>,
    /// The old schema with this change only, prepared when the first object needs it.
    judge: OnceCell<Judge>,
}

impl<'g> Goal<'g> {
    pub(crate) fn new(path: &'g Path, reads: bool) -> Goal<'g> {
        Goal {
            path,
            reads,
            rule: None,
            is_default: false,
            writes_whole: false,
            through_status: false,
            alone: None,
            judge: OnceCell::new(),
        }
    }

    pub(crate) fn of_default(path: &'g Path) -> Goal<'g> {
        Goal {
            is_default: true,
            ..Goal::new(path, true)
        }
    }

    pub(crate) fn alone(self, alone: &'g Alone) -> Goal<'g> {
        Goal {
            alone: Some(alone),
            ..self
        }
    }

    pub(crate) fn writes_whole(self) -> Goal<'g> {
        Goal {
            writes_whole: true,
            ..self
        }
    }

    pub(crate) fn through_status(self) -> Goal<'g> {
        Goal {
            through_status: true,
            ..self
        }
    }

    fn writes_status(&self) -> bool {
        self.path.is_status() || self.through_status
    }

    pub(crate) fn of_rule(self, rule: &'g Cel) -> Goal<'g> {
        Goal {
            rule: Some(rule),
            ..self
        }
    }
}

impl<'b> Pair<'b> {
    pub(crate) fn new(old: Definition, new: Definition, budget: &'b Budget) -> Pair<'b> {
        Pair {
            old: Judge::new(old),
            new: Judge::new(new),
            budget,
            texts: Texts::default(),
        }
    }

    pub(crate) fn search(&self, goal: &Goal<'_>, candidates: &[Candidate]) -> Outcome {
        let mut outcome = Outcome::default();
        for round in 0..=ROUNDS {
            for (index, candidate) in candidates.iter().enumerate() {
                let object = self.make(&mut self.maker(round, index), goal.path, candidate);
                if self.examine(goal, &object, None, &mut outcome) || outcome.accepted >= MOST_ACCEPTED {
                    return outcome;
                }
            }
        }
        outcome
    }

    /// Searches for an object that isn't preserved by converting it from the first version to the
    /// second and back.
    pub(crate) fn search_loss(&self, goal: &Goal<'_>, candidates: &[Candidate]) -> Outcome {
        let mut outcome = Outcome::default();
        for round in 0..=ROUNDS {
            for (index, candidate) in candidates.iter().enumerate() {
                let object = self.make(&mut self.maker(round, index), goal.path, candidate);
                if !self.budget.take(count_values(&object)) {
                    outcome.is_cut_short = true;
                    return outcome;
                }
                let Ok(before) = store(&self.old, goal, &object) else {
                    continue;
                };
                outcome.accepted += 1;
                // Conversions don't validate, so it's irrelevant whether the new version would
                // accept the object.
                let there = self.new.read(&self.new.convert(&before));
                let back = self.old.read(&self.old.convert(&there));
                if let Some(effect) = differs(goal, &before, &back) {
                    outcome.parties.extend([Party::StoredObjects, Party::Readers]);
                    outcome.witness = Some(Witness {
                        object,
                        old: None,
                        effect,
                    });
                    return outcome;
                }
            }
        }
        outcome
    }

    /// Simplest values first, then random ones.
    fn maker(&self, round: u64, index: usize) -> Maker<'_> {
        match round {
            0 => Maker::simplest(&self.texts),
            round => Maker::random(round * 1_000 + index as u64, &self.texts),
        }
    }

    /// Searches for an object that violates a rule of the new schema. `node` is the old schema of
    /// the value with the rule.
    pub(crate) fn search_rule(&self, goal: &Goal<'_>, rule: &Cel, node: &Schema) -> Outcome {
        let pool = literals(rule);
        let mut outcome = Outcome::default();
        for round in 0..RULE_ROUNDS {
            let mut maker = match round {
                0 => Maker::simplest(&self.texts),
                round => Maker::for_rule(round, &rule.rule, &pool, &self.texts),
            };
            let value = Candidate::Value(maker.value(node, 1));
            let object = self.make(&mut self.surroundings(round), goal.path, &value);
            let object = match goal.path.0.is_empty() {
                true => self.make(&mut maker, goal.path, &value),
                false => object,
            };
            let found = match rule.rule.contains("oldSelf") {
                true => {
                    let other = Candidate::Value(maker.value(node, 1));
                    let old = match goal.path.0.is_empty() {
                        true => self.make(&mut maker, goal.path, &other),
                        false => self.make(&mut self.surroundings(round), goal.path, &other),
                    };
                    self.examine(goal, &object, Some(&old), &mut outcome)
                        || rule.optional_old_self == Some(true)
                            && self.examine(goal, &object, None, &mut outcome)
                }
                false => self.examine(goal, &object, None, &mut outcome),
            };
            if found || outcome.accepted >= MOST_ACCEPTED {
                break;
            }
        }
        outcome
    }

    /// Alternates with random surroundings, because the simplest ones may be invalid.
    fn surroundings(&self, round: u64) -> Maker<'_> {
        match round % 2 {
            0 => Maker::simplest(&self.texts),
            _ => Maker::random(round, &self.texts),
        }
    }

    fn make(&self, maker: &mut Maker<'_>, path: &Path, candidate: &Candidate) -> Value {
        let definition = self.old.definition();
        let api_version = gvk::api_version(&definition.group, &definition.version);
        let mut object = maker.object(
            &api_version,
            &definition.kind,
            &definition.schema,
            &path.0,
            candidate,
        );
        if !definition.is_namespaced
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("namespace");
        }
        object
    }

    /// Validates an object against both schemas. Returns true if the search is over, due to either
    /// a witness or an exhausted budget. A witness for another reading of a default is kept, but the
    /// search goes on.
    fn examine(&self, goal: &Goal<'_>, object: &Value, old: Option<&Value>, outcome: &mut Outcome) -> bool {
        if !self
            .budget
            .take(count_values(object) + old.map_or(0, count_values))
        {
            outcome.is_cut_short = true;
            return true;
        }
        let stored = match old.map(|old| store(&self.old, goal, old)) {
            None => None,
            Some(Ok(stored)) => Some(stored),
            Some(Err(_)) => return false,
        };
        let before = match write(&self.old, goal, object, stored.as_ref()).result {
            Ok(before) => before,
            Err(_) => return false,
        };
        outcome.accepted += 1;
        // Any effect of the new schema will do, because the server skips rules after other errors.
        // What the change itself does is decided without the other changes.
        let after = write(&self.new, goal, object, stored.as_ref()).result;
        let is_affected = match &after {
            Err(failure) => !matches!(failure, Failure::TooLarge),
            Ok(after) => differs(goal, &before, after).is_some(),
        };
        if !is_affected {
            return false;
        }
        let Some(alone) = self.alone(goal) else {
            outcome.is_cut_short = true;
            return true;
        };
        let effect = match (write(alone, goal, object, stored.as_ref()).result, &after) {
            (Err(failure), Err(_)) => relevant(goal, &failure).map(Effect::Refused),
            // Another change makes up for the error, e.g. one of the rule.
            (Err(_), Ok(after)) => differs(goal, &before, after),
            (Ok(after), _) => differs(goal, &before, &after),
        };
        let Some(effect) = effect else { return false };
        match &effect {
            Effect::Refused(_) => {
                outcome.parties.insert(match goal.writes_status() {
                    true => Party::Operator,
                    false => Party::Writers,
                });
                // Stored objects are read with the default, whether they're valid or not.
                if goal.is_default && differs(goal, &before, &alone.read(&before)).is_some() {
                    outcome.parties.extend([Party::StoredObjects, Party::Readers]);
                }
                // A stored object may no longer be updatable at all, not even to remove its
                // finalizers.
                if stored.is_none() && blocks_updates(alone, goal, &before) {
                    outcome.parties.extend([Party::StoredObjects, Party::Operator]);
                }
            }
            Effect::ReadsDifferently { .. } => {
                outcome.parties.extend([Party::StoredObjects, Party::Readers]);
            }
        }
        let is_refused = matches!(effect, Effect::Refused(_));
        if is_refused || outcome.witness.is_none() {
            outcome.witness = Some(Witness {
                object: object.clone(),
                old: stored,
                effect,
            });
        }
        is_refused || !goal.is_default
    }

    /// The old schema with the change in question only. `None` if the budget is exhausted.
    fn alone<'g>(&'g self, goal: &'g Goal<'_>) -> Option<&'g Judge> {
        let Some(alone) = goal.alone else {
            return Some(&self.new);
        };
        if let Some(judge) = goal.judge.get() {
            return Some(judge);
        }
        let old = self.old.definition();
        if !self.budget.take(2 * count_nodes(&old.schema)) {
            return None;
        }
        let mut definition = old.clone();
        if let Some(node) = find_node(&mut definition.schema, &alone.path.0) {
            *node = alone.node.clone();
        }
        Some(goal.judge.get_or_init(|| Judge::new(definition)))
    }
}

/// Returns true if updates of a stored object are rejected even if they only change labels.
fn blocks_updates(judge: &Judge, goal: &Goal<'_>, stored: &Value) -> bool {
    let mut body = stored.clone();
    body["metadata"]["labels"] = json!({ "changed": "true" });
    let verdict = judge.update(&Body::from(body), stored, FieldValidation::Ignore);
    verdict
        .result
        .is_err_and(|failure| relevant(goal, &failure).is_some())
}

fn write(judge: &Judge, goal: &Goal<'_>, object: &Value, stored: Option<&Value>) -> Verdict {
    let body = Body::from(object.clone());
    if goal.writes_status() && judge.definition().has_status && !goal.writes_whole {
        if let Some(stored) = stored {
            return judge.update_status(&body, stored, FieldValidation::Ignore);
        }
        // The create request ignores the status.
        let created = judge.create(&body, NAMESPACE, FieldValidation::Ignore);
        return match &created.result {
            Ok(stored) => judge.update_status(&body, stored, FieldValidation::Ignore),
            Err(_) => created,
        };
    }
    match stored {
        Some(stored) => judge.update(&body, stored, FieldValidation::Ignore),
        None => judge.create(&body, NAMESPACE, FieldValidation::Ignore),
    }
}

fn store(judge: &Judge, goal: &Goal<'_>, object: &Value) -> Result<Value, Failure> {
    write(judge, goal, object, None).result
}

/// The messages that are relevant to the goal.
fn relevant(goal: &Goal<'_>, failure: &Failure) -> Option<Vec<String>> {
    let messages: Vec<String> = match failure {
        Failure::Invalid { errors, .. } => errors
            .iter()
            .filter(|error| concerns(goal, error))
            .map(FieldError::to_string)
            .collect(),
        Failure::Malformed { message, .. } => vec![message.clone()],
        Failure::TooLarge => Vec::new(),
    };
    (!messages.is_empty()).then_some(messages)
}

fn concerns(goal: &Goal<'_>, error: &FieldError) -> bool {
    if let Some(rule) = goal.rule {
        let says = |text: &str| error.message.contains(text);
        let is_its = match (&rule.message, &rule.message_expression) {
            (_, Some(_)) => true,
            (Some(message), None) => says(message.trim()),
            (None, None) => says(rule.rule.lines().next().unwrap_or_default().trim()),
        };
        return is_its && !says(UNCHECKED) && goal.path.covers(&error.field);
    }
    if error.message.contains(UNCHECKED) {
        return false;
    }
    if goal.is_default {
        return true;
    }
    // Errors in alternatives have no field, but mention its name in the message.
    match error.field.as_str() {
        "" | "<nil>" => error.message.contains(&*last_name(goal.path)),
        field => goal.path.covers(field),
    }
}

/// Added by the server if it skips CEL rules.
const UNCHECKED: &str = "some validation rules were not checked";

fn last_name(path: &Path) -> String {
    let text = path.to_string();
    text.rsplit(['.', '['])
        .find(|name| !name.starts_with('*'))
        .unwrap_or_default()
        .to_owned()
}

fn differs(goal: &Goal<'_>, before: &Value, after: &Value) -> Option<Effect> {
    if !goal.reads {
        return None;
    }
    let (before, after) = (goal.path.find(before).cloned(), goal.path.find(after).cloned());
    (before != after).then_some(Effect::ReadsDifferently { before, after })
}

fn find_node<'s>(schema: &'s mut Schema, path: &[Step]) -> Option<&'s mut Schema> {
    let Some((step, rest)) = path.split_first() else {
        return Some(schema);
    };
    let inner = match step {
        Step::Field(name) => match schema.properties.contains_key(name.as_str()) {
            true => schema.properties.get_mut(name.as_str()),
            false => schema.additional_properties.as_mut(),
        },
        Step::Items => schema.items.as_mut(),
        Step::Values => schema.additional_properties.as_mut(),
    };
    find_node(Arc::make_mut(inner?), rest)
}
