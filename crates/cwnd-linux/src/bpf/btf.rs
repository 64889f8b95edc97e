//! BTF, the types of the kernel and of an object: who has which member where.

use super::object::{Bytes, Damaged};
use std::collections::HashMap;

/// What a type is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Struct,
    Function,
    /// A typedef, or const, volatile and the like: another type in disguise.
    Modifier,
    Array,
    Other,
}

#[derive(Clone, Copy)]
struct Type<'a> {
    name: &'a str,
    kind: Kind,
    /// Bytes, or the type that it stands for.
    size: u32,
    /// Where its members stand in the data, and how many there are.
    members: usize,
    count: usize,
    bit_fields: bool,
}

/// A member of a struct or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name; empty for an anonymous struct or union.
    pub name: &'a str,
    /// Its type.
    pub kind: u32,
    /// The bit at which it begins.
    pub bit: u32,
    /// How many bits it has; 0 for one that is no bit field.
    pub bits: u32,
}

/// The smallest BTF: an int.
pub fn smallest() -> Vec<u8> {
    const STRINGS: &[u8; 5] = b"\0int\0";
    let header: [u32; 6] = [0x0001_eb9f, 24, 0, 16, 16, STRINGS.len() as u32];
    // Its name, its kind, its bytes; signed, of 32 bits.
    let int: [u32; 4] = [1, 1 << 24, 4, 1 << 24 | 32];
    let words = header.iter().chain(&int).flat_map(|word| word.to_ne_bytes());
    words.chain(*STRINGS).collect()
}

/// All types of the kernel or of an object.
pub struct Btf<'a> {
    data: Bytes<'a>,
    strings: Bytes<'a>,
    types: Vec<Type<'a>>,
    /// Structs and functions by name.
    named: HashMap<(&'a str, bool), u32>,
}

impl<'a> Btf<'a> {
    /// Reads BTF.
    pub fn parse(file: &'a [u8]) -> Result<Btf<'a>, Damaged> {
        let file = Bytes(file);
        if file.u16(0)? != 0xeb9f {
            return Err("it has no BTF of this machine's byte order");
        }
        let head = file.u32(4)? as usize;
        let data = file.at(head + file.u32(8)? as usize, file.u32(12)? as usize)?;
        let strings = file.at(head + file.u32(16)? as usize, file.u32(20)? as usize)?;
        let void =
            Type { name: "", kind: Kind::Other, size: 0, members: 0, count: 0, bit_fields: false };
        let mut btf = Btf { data, strings, types: vec![void], named: HashMap::new() };
        let mut at = 0;
        while at < data.0.len() {
            at = btf.read(at)?;
        }
        Ok(btf)
    }

    /// Reads the type that begins at an offset, and returns where the next one does.
    fn read(&mut self, at: usize) -> Result<usize, Damaged> {
        let info = self.data.u32(at + 4)?;
        let (number, count) = (info >> 24 & 31, (info & 0xffff) as usize);
        let (kind, each, more) = match number {
            1 | 14 | 17 => (Kind::Other, 0, 4),
            3 => (Kind::Array, 0, 12),
            4 | 5 => (Kind::Struct, 12, 0),
            6 | 13 => (Kind::Other, 8, 0),
            15 | 19 => (Kind::Other, 12, 0),
            12 => (Kind::Function, 0, 0),
            8..=11 | 18 => (Kind::Modifier, 0, 0),
            2 | 7 | 16 => (Kind::Other, 0, 0),
            _ => return Err("its BTF has a kind of type that is newer than this program"),
        };
        let (name, members) = (self.strings.text(self.data.u32(at)? as usize)?, at + 12);
        let id = self.types.len() as u32;
        if matches!(kind, Kind::Struct | Kind::Function) && !name.is_empty() {
            self.named.entry((name, kind == Kind::Function)).or_insert(id);
        }
        let size = self.data.u32(at + 8)?;
        let bit_fields = info >> 31 != 0;
        self.types.push(Type { name, kind, size, members, count, bit_fields });
        Ok(members + count * each + more)
    }

    /// The struct called `name`.
    pub fn structure(&self, name: &str) -> Option<u32> {
        self.named.get(&(name, false)).copied()
    }

    /// The function called `name`.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.named.get(&(name, true)).copied()
    }

    fn get(&self, id: u32) -> Result<&Type<'a>, Damaged> {
        self.types.get(id as usize).ok_or("its BTF refers to a type that is not there")
    }

    /// What a type is beneath its typedefs and qualifiers.
    pub fn resolve(&self, mut id: u32) -> Result<u32, Damaged> {
        // A chain as long as all types would be a circle.
        for _ in 0..64 {
            let found = self.get(id)?;
            if found.kind != Kind::Modifier {
                return Ok(id);
            }
            id = found.size;
        }
        Err("its BTF goes in a circle")
    }

    /// A type's name.
    pub fn name(&self, id: u32) -> Result<&'a str, Damaged> {
        Ok(self.get(id)?.name)
    }

    /// Bytes of a struct or a number.
    pub fn size(&self, id: u32) -> Result<u32, Damaged> {
        Ok(self.get(self.resolve(id)?)?.size)
    }

    /// Whether it is an array, and then the type of an element.
    pub fn element(&self, id: u32) -> Result<Option<u32>, Damaged> {
        let found = self.get(id)?;
        match found.kind {
            Kind::Array => Ok(Some(self.data.u32(found.members)?)),
            _ => Ok(None),
        }
    }

    /// The members of a struct or union; none of anything else.
    pub fn members(&self, id: u32) -> Result<Vec<Member<'a>>, Damaged> {
        let found = *self.get(id)?;
        let count = if found.kind == Kind::Struct { found.count } else { 0 };
        (0..count)
            .map(|n| {
                let at = found.members + 12 * n;
                let place = self.data.u32(at + 8)?;
                let (bit, bits) =
                    if found.bit_fields { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
                let name = self.strings.text(self.data.u32(at)? as usize)?;
                Ok(Member { name, kind: self.data.u32(at + 4)?, bit, bits })
            })
            .collect()
    }

    /// The member called `name` of a struct, also of what stands in it without a name; its bit counts
    /// from the beginning of the struct.
    pub fn find(&self, id: u32, name: &str) -> Result<Option<Member<'a>>, Damaged> {
        for member in self.members(id)? {
            if member.name == name {
                return Ok(Some(member));
            }
            if member.name.is_empty()
                && let Some(inner) = self.find(self.resolve(member.kind)?, name)?
            {
                return Ok(Some(Member { bit: member.bit + inner.bit, ..inner }));
            }
        }
        Ok(None)
    }

    /// A text of the string table.
    pub fn text(&self, at: u32) -> Result<&'a str, Damaged> {
        self.strings.text(at as usize)
    }
}
