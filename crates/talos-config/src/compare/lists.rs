//! Which element of a list is which of another.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::schema::Pairing;

/// Returns by which field an element of a list is known, and its value there.
pub(super) fn name(element: &Value, pairing: Pairing) -> Option<(&'static str, &Value)> {
    let there = |key: &'static str| {
        let value = element.get(key)?;
        let empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Null => true,
            _ => false,
        };
        (!empty).then_some((key, value))
    };
    match pairing {
        Pairing::Key(key) | Pairing::KeyReplaced(key) => there(key),
        Pairing::Interface => there("interface").or_else(|| there("deviceSelector")),
    }
}

/// Returns whether the elements that have a name each have their own, so that they can be told by it.
pub(super) fn are_told(elements: &[Value], pairing: Pairing) -> bool {
    let mut seen = HashSet::with_capacity(elements.len());
    elements
        .iter()
        .filter_map(|element| name(element, pairing))
        .all(|name| seen.insert(name))
}

/// By their names: the positions of elements in a list of which each has its own.
pub(super) type Named<'a> = HashMap<(&'static str, &'a Value), usize>;

/// Returns where the elements of a list that have a name stand.
pub(super) fn named(elements: &[Value], pairing: Pairing) -> Named<'_> {
    let named = elements.iter().enumerate();
    named
        .filter_map(|(at, element)| Some((name(element, pairing)?, at)))
        .collect()
}

/// Returns the pairs of positions of a longest common subsequence of two lists.
pub(super) fn common(a: &[Value], b: &[Value]) -> Vec<(usize, usize)> {
    const LARGE: usize = 250_000;
    let front = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let back = a[front..]
        .iter()
        .rev()
        .zip(b[front..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (rows, columns) = (a.len() - front - back, b.len() - front - back);
    let mut pairs: Vec<(usize, usize)> = (0..front).map(|at| (at, at)).collect();
    if rows * columns <= LARGE {
        let width = columns + 1;
        let same = |i: usize, j: usize| a[front + i] == b[front + j];
        let mut best = vec![0u32; (rows + 1) * width];
        for i in (0..rows).rev() {
            for j in (0..columns).rev() {
                best[i * width + j] = match same(i, j) {
                    true => best[(i + 1) * width + j + 1] + 1,
                    false => best[(i + 1) * width + j].max(best[i * width + j + 1]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < rows && j < columns {
            if same(i, j) {
                pairs.push((front + i, front + j));
                (i, j) = (i + 1, j + 1);
            } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    pairs.extend((0..back).map(|at| (a.len() - back + at, b.len() - back + at)));
    pairs
}
