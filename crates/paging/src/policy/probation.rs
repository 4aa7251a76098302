//! How much of local memory a policy keeps on probation.

/// How much of the budget a policy keeps on probation.
///
/// The larger the share, the closer the order is to the one that knows every reference, and the
/// more soft faults it costs. After every 512 fetches the share grows or shrinks by 2 % of the
/// budget, so that there are about `touches` soft faults to 100 fetches.
///
/// Fetches and soft faults for 100 fetches beside the policy that knows every reference, 64 MiB of
/// which 10, 25, 50 and 80 % are local, from a simulation of this rule:
///
/// | access | clock | lru |
/// |---|---|---|
/// | 80 % to a fifth | −0.2, −2.4, +1.3, −0.5 %; at most 86 | +0.2, +1.1, −0.1, −0.1 %; 297 |
/// | Zipf a = 1.0 | 0.0, +0.4, +1.3, +2.8 %; 115 | +0.4, +0.5, +0.4, +0.4 %; 303 |
/// | uniform | at most 0.2 % | at most 0.1 % |
/// | a quarter of the memory that moves | 10, 50, 80: 0.2; 25: +15 % | at most 1.4 % |
/// | 30 % in a loop, beside uniform | +0.0, −1.5, +11.5, +3.7 % | at most 1.1 % |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probation {
    /// The share at first, in thousandths of the budget.
    pub initial: u32,
    /// The least share.
    pub least: u32,
    /// The largest share.
    pub most: u32,
    /// How many soft faults to 100 fetches the share is adapted to.
    pub touches: u32,
}
