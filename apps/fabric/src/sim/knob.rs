//! What can be set of a simulation: the type of a knob.

/// Something that can be set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knob {
    /// As a flag; in files with `_` for `-`.
    pub(crate) name: &'static str,
    /// What a value looks like.
    pub(crate) value: &'static str,
    /// What it is if it is not said; in words if it is not a value.
    pub(crate) default: Preset,
    /// What it does.
    pub(crate) what: &'static str,
    /// Where the default comes from.
    pub(crate) from: &'static str,
    /// The knobs it belongs to, and the values of those under which it says something.
    pub(crate) needs: &'static [Need],
}

/// A knob, and those of its values with which another says something.
pub(crate) type Need = (&'static str, &'static [&'static str]);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Preset {
    Value(&'static str),
    Words(&'static str),
}

pub(super) const fn knob(
    name: &'static str,
    value: &'static str,
    default: Preset,
    what: &'static str,
    from: &'static str,
) -> Knob {
    Knob { name, value, default, what, from, needs: &[] }
}

impl Knob {
    pub(super) const fn of(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// What is used if nothing is said; empty if that depends on other knobs.
    pub(crate) const fn value(&self) -> &'static str {
        match self.default {
            Preset::Value(value) => value,
            Preset::Words(_) => "",
        }
    }

    pub(super) const fn shown(&self) -> &'static str {
        let (Preset::Value(text) | Preset::Words(text)) = self.default;
        text
    }
}
