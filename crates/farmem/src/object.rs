//! The object that is mapped into every program image, carried inside this binary.
//!
//! It is built from the crate `farmem-preload` as a shared object that depends on nothing. No
//! loader is needed: its segments are copied to an address, and the few words that hold addresses
//! of its own are relocated.

use super::protocol::DATA_AT;

/// The object, built together with this crate.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libafar.so"));

const PAGE: u64 = 4096;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const WRITABLE: u32 = 2;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const R_X86_64_RELATIVE: u64 = 8;
const RELA_BYTES: u64 = 24;
const HEADER_BYTES: u64 = 56;

/// The object as it lies in memory at address 0.
#[derive(Debug)]
pub(crate) struct Object {
    image: Vec<u8>,
    entry: u64,
    /// Offsets of words that hold an address within the object, and that address.
    relocated: Vec<(usize, u64)>,
}

impl Object {
    /// Lays the object out in memory, from its ELF segments.
    ///
    /// # Panics
    /// If the object was not built as expected; a test holds that it is.
    pub(crate) fn new() -> Self {
        let segments: Vec<Segment> = (0..number(OBJECT, 56, 2)).map(Segment::read).collect();
        let loaded = || segments.iter().filter(|segment| segment.kind == PT_LOAD);
        let end = loaded().map(|segment| segment.address + segment.memory_bytes).max();
        let bytes = end.unwrap_or(0).next_multiple_of(PAGE);
        let mut image = vec![0; place(bytes)];
        for segment in loaded() {
            let from = &OBJECT[place(segment.offset)..][..place(segment.file_bytes)];
            image[place(segment.address)..][..from.len()].copy_from_slice(from);
        }
        let writable = loaded().filter(|segment| segment.flags & WRITABLE != 0);
        let data = writable.map(|segment| segment.address / PAGE * PAGE).min().unwrap_or(bytes);
        let half = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        image[DATA_AT..][..4].copy_from_slice(&half(data));
        image[DATA_AT + 4..][..4].copy_from_slice(&half(bytes - data));
        let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC);
        let relocated = dynamic.map_or_else(Vec::new, |dynamic| relocations(&image, dynamic));
        Self { entry: number(OBJECT, 24, 8), image, relocated }
    }

    /// The memory that the object takes, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.image.len() as u64
    }

    /// The offset at which the helper enters the object.
    pub(crate) const fn entry(&self) -> u64 {
        self.entry
    }

    /// The offset at which a thread that is to fork enters the object. The first instruction at
    /// `entry` jumps over the distance to it.
    pub(crate) fn fork_entry(&self) -> u64 {
        let at = self.entry + 2;
        let distance = number(&self.image, at, 4);
        // The distance is a signed number of four bytes.
        let signed = (distance << 32).cast_signed() >> 32;
        at.wrapping_add_signed(signed)
    }

    /// The pages of the object at address `base`, without those that are all zeros.
    pub(crate) fn at(&self, base: u64) -> Vec<(u64, Vec<u8>)> {
        let mut image = self.image.clone();
        for &(place, target) in &self.relocated {
            image[place..][..8].copy_from_slice(&(base + target).to_le_bytes());
        }
        // A page of zeros need not be written.
        let pages = image.chunks(place(PAGE)).zip((0..).step_by(place(PAGE)));
        let filled = pages.filter(|(page, _)| page.iter().any(|&byte| byte != 0));
        filled.map(|(page, at)| (base + at, page.to_vec())).collect()
    }
}

struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

impl Segment {
    // Program header `index` of the ELF file.
    fn read(index: u64) -> Self {
        let at = number(OBJECT, 32, 8) + index * HEADER_BYTES;
        let field = |offset, bytes| number(OBJECT, at + offset, bytes);
        let short = |offset| u32::try_from(field(offset, 4)).unwrap_or(0);
        Self {
            kind: short(0),
            flags: short(4),
            offset: field(8, 8),
            address: field(16, 8),
            file_bytes: field(32, 8),
            memory_bytes: field(40, 8),
        }
    }
}

// The object's relocations: offset of the word, and the address that it holds.
fn relocations(image: &[u8], dynamic: &Segment) -> Vec<(usize, u64)> {
    let entries = (dynamic.address..dynamic.address + dynamic.memory_bytes).step_by(16);
    let tagged = |tag| {
        let mut entries = entries.clone();
        entries.find(|&at| number(image, at, 8) == tag).map(|at| number(image, at + 8, 8))
    };
    let (Some(table), Some(bytes)) = (tagged(DT_RELA), tagged(DT_RELASZ)) else {
        return Vec::new();
    };
    let read = |at: u64| {
        let kind = number(image, at + 8, 8);
        assert_eq!(kind, R_X86_64_RELATIVE, "the object refers to something outside of it");
        (place(number(image, at, 8)), number(image, at + 16, 8))
    };
    (0..bytes / RELA_BYTES).map(|index| read(table + index * RELA_BYTES)).collect()
}

// The little-endian number of `length` bytes at `at`.
fn number(bytes: &[u8], at: u64, length: usize) -> u64 {
    let field = &bytes[place(at)..][..length];
    field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_needs_nothing_but_its_own_addresses() {
        let object = Object::new();
        assert!(object.entry() > 0 && object.entry() < data(&object).0);
        // jmp over the distance; lea rsp, [rsp - 128].
        assert_eq!(object.image[place(object.entry())..][..2], [0xeb, 4]);
        let fork = &object.image[place(object.fork_entry())..];
        assert_eq!(fork[..5], [0x48, 0x8d, 0x64, 0x24, 0x80]);
        const BASE: u64 = 0x7e40_0000_0000;
        let pages = object.at(BASE);
        let inside = BASE..BASE + object.bytes();
        assert!(pages.iter().all(|(at, page)| inside.contains(at) && page.len() == 4096));
        assert!(pages.len() < 8, "{} pages are copied into every process", pages.len());
        for &(place, target) in &object.relocated {
            let at = BASE + place as u64;
            let (start, page) = pages.iter().find(|(start, _)| at - start < PAGE).unwrap();
            assert_eq!(number(page, at - start, 8), BASE + target);
        }
    }

    fn data(object: &Object) -> (u64, u64) {
        let at = DATA_AT as u64;
        (number(&object.image, at, 4), number(&object.image, at + 4, 4))
    }

    #[test]
    fn the_object_says_where_its_data_are() {
        let object = Object::new();
        let (start, bytes) = data(&object);
        assert!(start.is_multiple_of(PAGE) && bytes > 0);
        assert_eq!(start + bytes, object.bytes());
    }
}
