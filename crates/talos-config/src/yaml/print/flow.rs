//! Collections in brackets, and values on one line.

use super::Printer;
use crate::yaml::layout::{Form, Quote, Span};
use crate::yaml::node::{Child, Data, Node};
use crate::yaml::scalar;

impl Printer<'_> {
    /// Prints a collection in brackets that stood in the text.
    pub(super) fn flow(&mut self, node: &Node, children: &[Child], tail: &Span, comma: bool) {
        let is_list = matches!(node.data, Data::List(_));
        self.out.push(if is_list { '[' } else { '{' });
        let habit = children
            .iter()
            .rev()
            .find_map(|child| child.place.as_ref())
            .map(|place| place.lead.clone());
        for (index, child) in children.iter().enumerate() {
            let source = self.source;
            if index > 0 {
                self.out.push(',');
            }
            let lead = child
                .place
                .as_ref()
                .map(|place| &source[place.lead.clone()]);
            match lead {
                Some(lead) if lead.contains('\n') => self.out.push_str(lead),
                Some(lead) => {
                    let was_first = child
                        .place
                        .as_ref()
                        .is_some_and(|place| !source[..place.lead.start].ends_with(','));
                    self.out.push_str(match (index, was_first) {
                        (0, false) => "",
                        (1.., true) if lead.is_empty() => " ",
                        _ => lead,
                    });
                }
                None => {
                    let lead = habit.clone().map_or("", |span| &source[span]);
                    if lead.contains('\n') && !lead.contains('#') {
                        self.out.push_str(lead);
                    } else if index > 0 {
                        self.out.push(' ');
                    }
                }
            }
            self.flow_child(child, is_list);
        }
        if comma && !children.is_empty() {
            self.out.push(',');
        }
        self.copy(tail);
        self.out.push(if is_list { ']' } else { '}' });
    }

    fn flow_child(&mut self, child: &Child, is_list: bool) {
        let place = child.place.as_ref();
        match place {
            Some(place) if !place.name.is_empty() || is_list => self.copy(&place.name),
            _ if is_list => {}
            _ => {
                let key = scalar::string(&child.key, Quote::None, true);
                self.out.push_str(&key);
                self.out.push(':');
            }
        }
        match place {
            Some(place) if !self.is_fresh(&child.value) => {
                self.copy(&place.gap);
                self.node(&child.value, true);
            }
            _ => {
                if !is_list {
                    let colon = self.out.ends_with(':');
                    self.out.push_str(if colon { " " } else { ": " });
                }
                self.flow_value(&child.value, true);
            }
        }
        if let Some(place) = place {
            self.copy(&place.tail);
        }
    }

    /// Prints a new value on one line.
    pub(super) fn flow_value(&mut self, node: &Node, in_flow: bool) {
        match &node.followed().data {
            Data::Scalar(value) => {
                let quote = match node.form {
                    Form::Fresh(quote) => quote,
                    _ => Quote::None,
                };
                self.out.push_str(&scalar::inline(value, quote, in_flow));
            }
            Data::List(children) => {
                self.out.push('[');
                for (index, child) in children.iter().enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    self.flow_value(&child.value, true);
                }
                self.out.push(']');
            }
            Data::Mapping(_) => {
                self.out.push('{');
                for (index, (key, value)) in node.entries().enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    self.out.push_str(&scalar::string(key, Quote::None, true));
                    self.out.push_str(": ");
                    self.flow_value(value, true);
                }
                self.out.push('}');
            }
            Data::Alias(_) => {}
        }
    }
}
