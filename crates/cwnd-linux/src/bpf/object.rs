//! An object file of clang's: little-endian ELF64 for the BPF machine, as far as the loader needs it.

use std::ops::Range;

/// Bytes that are read in order or by offset; what is outside them is an error.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

/// What is wrong with an object.
pub type Damaged = &'static str;

const SHORT: Damaged = "it ends too early";

impl<'a> Bytes<'a> {
    /// The bytes in a range.
    pub fn part(self, range: Range<usize>) -> Result<Bytes<'a>, Damaged> {
        self.0.get(range).map(Bytes).ok_or(SHORT)
    }

    /// So many bytes from an offset on.
    pub fn at(self, offset: usize, length: usize) -> Result<Bytes<'a>, Damaged> {
        self.part(offset..offset.checked_add(length).ok_or(SHORT)?)
    }

    /// A 16-bit number.
    pub fn u16(self, at: usize) -> Result<u16, Damaged> {
        let bytes = self.at(at, 2)?.0;
        Ok(u16::from_le_bytes(bytes.try_into().map_err(|_| SHORT)?))
    }

    /// A 32-bit number.
    pub fn u32(self, at: usize) -> Result<u32, Damaged> {
        let bytes = self.at(at, 4)?.0;
        Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| SHORT)?))
    }

    /// A 64-bit number.
    pub fn u64(self, at: usize) -> Result<u64, Damaged> {
        let bytes = self.at(at, 8)?.0;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| SHORT)?))
    }

    /// The text from an offset to the next zero.
    pub fn text(self, at: usize) -> Result<&'a str, Damaged> {
        let rest = self.0.get(at..).ok_or(SHORT)?;
        let text = rest.split(|&byte| byte == 0).next().unwrap_or(rest);
        std::str::from_utf8(text).map_err(|_| "a name is no text")
    }
}

/// A section.
pub struct Section<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its content.
    pub data: Bytes<'a>,
    /// For relocations, the section that they are of.
    info: usize,
    kind: u32,
}

/// What an instruction refers to.
pub struct Relocation<'a> {
    /// The byte of the section that has to be patched.
    pub offset: usize,
    /// The symbol's name; a section's own symbol has none.
    pub symbol: &'a str,
    /// The symbol's section; `None` for one of the kernel's.
    pub section: Option<usize>,
    /// The symbol's place in its section.
    pub value: u64,
}

/// An object file.
pub struct Object<'a> {
    /// Its sections, at their numbers.
    pub sections: Vec<Section<'a>>,
}

const SYMTAB: u32 = 2;
const REL: u32 = 9;

impl<'a> Object<'a> {
    /// Reads an object.
    pub fn parse(file: &'a [u8]) -> Result<Object<'a>, Damaged> {
        let file = Bytes(file);
        if file.u32(0)? != u32::from_le_bytes(*b"\x7fELF") || file.u16(18)? != 247 {
            return Err("it is no object for the BPF machine");
        }
        let (table, size) = (file.u64(40)? as usize, usize::from(file.u16(58)?));
        let (count, names) = (usize::from(file.u16(60)?), usize::from(file.u16(62)?));
        let header = |n: usize| file.at(table + n * size, 64);
        let content = |head: Bytes<'a>| file.at(head.u64(24)? as usize, head.u64(32)? as usize);
        let names = content(header(names)?)?;
        let mut sections = Vec::with_capacity(count);
        for n in 0..count {
            let head = header(n)?;
            let kind = head.u32(4)?;
            // A section without bytes in the file: none of ours.
            let data = if kind == 8 { Bytes(&[]) } else { content(head)? };
            let name = names.text(head.u32(0)? as usize)?;
            sections.push(Section { name, data, info: head.u32(44)? as usize, kind });
        }
        Ok(Object { sections })
    }

    /// The content of the section called `name`.
    pub fn section(&self, name: &str) -> Result<Bytes<'a>, Damaged> {
        let found = self.sections.iter().find(|section| section.name == name);
        found.map(|section| section.data).ok_or("a section is missing")
    }

    /// What the instructions of a section refer to.
    pub fn relocations(&self, section: usize) -> Result<Vec<Relocation<'a>>, Damaged> {
        let of_kind = |kind| self.sections.iter().filter(move |section| section.kind == kind);
        let symbols = of_kind(SYMTAB).next().ok_or("it has no symbols")?;
        let names = self.section(".strtab")?;
        let mut found = Vec::new();
        for table in of_kind(REL).filter(|table| table.info == section) {
            for at in (0..table.data.0.len()).step_by(16) {
                let symbol = symbols.data.at(table.data.u32(at + 12)? as usize * 24, 24)?;
                let place = usize::from(symbol.u16(6)?);
                found.push(Relocation {
                    offset: table.data.u64(at)? as usize,
                    symbol: names.text(symbol.u32(0)? as usize)?,
                    section: (place != 0).then_some(place),
                    value: symbol.u64(8)?,
                });
            }
        }
        Ok(found)
    }
}
