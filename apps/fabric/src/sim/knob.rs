//! The type of a knob, a setting of a simulation.

/// A setting of a simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knob {
    /// The name as a flag; in files with `_` for `-`.
    pub(crate) name: &'static str,
    /// What a value looks like.
    pub(crate) value: &'static str,
    /// The value where none is set; in words if it depends on other knobs.
    pub(crate) default: Preset,
    /// What the knob decides, for `--list` and help.
    pub(crate) what: &'static str,
    /// Where the default comes from.
    pub(crate) from: &'static str,
    /// Other knobs, each with the values under which this knob has an effect.
    pub(crate) needs: &'static [Need],
}

/// A knob, and those of its values with which another has an effect.
pub(crate) type Need = (&'static str, &'static [&'static str]);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Preset {
    Value(&'static str),
    Words(&'static str),
}

/// A knob that has an effect whatever other knobs are set to.
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
    /// The same knob, with an effect only where other knobs have the values in `needs`.
    pub(super) const fn of(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// The default; empty if it depends on other knobs.
    pub(crate) const fn value(&self) -> &'static str {
        match self.default {
            Preset::Value(value) => value,
            Preset::Words(_) => "",
        }
    }

    /// The default as `--list` shows it: a value, or words.
    pub(super) const fn shown(&self) -> &'static str {
        let (Preset::Value(text) | Preset::Words(text)) = self.default;
        text
    }
}
