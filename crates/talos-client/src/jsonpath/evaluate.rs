//! Selecting what a path points to.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, Operand, Step};

/// Returns what the steps lead to from `current`.
pub(super) fn select<'a>(steps: &'a [Step], root: &'a Value, current: &'a Value) -> Vec<&'a Value> {
    steps.iter().fold(vec![current], |values, step| {
        values
            .into_iter()
            .flat_map(|value| take(step, root, value))
            .collect()
    })
}

fn take<'a>(step: &'a Step, root: &'a Value, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Root => vec![root],
        Step::Current => vec![value],
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => item(value, *index).into_iter().collect(),
        Step::Slice { start, end, step } => slice(value, *start, *end, *step),
        Step::All => children(value),
        Step::Descend => descendants(value),
        Step::Union(steps) => steps
            .iter()
            .flat_map(|step| take(step, root, value))
            .collect(),
        Step::Filter(filter) => children(value)
            .into_iter()
            .filter(|child| holds(filter, root, child))
            .collect(),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn descendants(value: &Value) -> Vec<&Value> {
    let mut all = vec![value];
    for child in children(value) {
        all.extend(descendants(child));
    }
    all
}

fn item(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    items.get(position(index, items.len())?)
}

/// Counts a negative index from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).ok()
}

fn slice(value: &Value, start: Option<i64>, end: Option<i64>, step: i64) -> Vec<&Value> {
    let Some(items) = value.as_array() else {
        return Vec::new();
    };
    let length = items.len();
    let bound = |index: Option<i64>, none: usize| match index {
        None => none,
        Some(index) => position(index, length).unwrap_or(0).min(length),
    };
    let (start, end) = (bound(start, 0), bound(end, length));
    let step = usize::try_from(step).unwrap_or(1).max(1);
    items.iter().take(end).skip(start).step_by(step).collect()
}

fn holds(filter: &Filter, root: &Value, item: &Value) -> bool {
    let left = operand(&filter.left, root, item);
    match &filter.comparison {
        None => left.is_some(),
        Some((comparison, right)) => {
            let (Some(left), Some(right)) = (left, operand(right, root, item)) else {
                return false;
            };
            compare(left, *comparison, right)
        }
    }
}

fn operand<'a>(operand: &'a Operand, root: &'a Value, item: &'a Value) -> Option<&'a Value> {
    match operand {
        Operand::Value(value) => Some(value),
        Operand::Path(steps) => select(steps, root, item).into_iter().next(),
    }
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> bool {
    let order = match (left, right) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => None,
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ if left == right => Some(Ordering::Equal),
        _ => None,
    };
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    }
}
