//! CO-RE: the offsets of kernel members in a program, as this kernel has them.

use super::btf::Btf;
use super::object::{Bytes, Damaged};

/// What an instruction wants to know of a member.
const BYTE_OFFSET: u32 = 0;
const LEFT_SHIFT: u32 = 4;
const RIGHT_SHIFT: u32 = 5;

/// The instruction's class, its lowest three bits.
const LOAD: u64 = 0;
const LOAD_MEMORY: u64 = 1;
const STORE: u64 = 2;
const STORE_REGISTER: u64 = 3;

/// Why a program does not fit this kernel.
pub enum Misfit {
    /// The object is damaged.
    Damaged(Damaged),
    /// The kernel has no such member.
    Member(String),
}

impl From<Damaged> for Misfit {
    fn from(problem: Damaged) -> Self {
        Misfit::Damaged(problem)
    }
}

/// Where a member is: the bit at which it begins, and how many bits a bit field has.
struct Place {
    bit: u32,
    bits: u32,
}

/// Follows an access such as `0:1:3`, members by their number in the object's type, to the kernel's
/// members of the same names.
fn place(own: &Btf<'_>, kernel: &Btf<'_>, id: u32, access: &str) -> Result<Place, Misfit> {
    let mut local = own.resolve(id)?;
    let name = own.name(local)?;
    let missing = |what: &str| Misfit::Member(format!("this kernel has no {what}"));
    let found = kernel.structure(name).ok_or_else(|| missing(&format!("struct {name}")))?;
    let (mut remote, mut place) = (found, Place { bit: 0, bits: 0 });
    // The first number counts whole structs from the pointer on: always 0 here.
    for step in access.split(':').skip(1) {
        let step: usize = step.parse().map_err(|_| "an access is no list of numbers")?;
        if let Some(element) = own.element(local)? {
            local = own.resolve(element)?;
            let size = kernel.size(remote)?;
            place.bit += step as u32 * size * 8;
            continue;
        }
        let members = own.members(local)?;
        let member = members.get(step).ok_or("an access to a member that is not there")?;
        let full = || missing(&format!("{}.{}", own.name(local).unwrap_or("?"), member.name));
        let there = kernel.find(remote, member.name)?.ok_or_else(full)?;
        place = Place { bit: place.bit + there.bit, bits: there.bits };
        local = own.resolve(member.kind)?;
        remote = kernel.resolve(there.kind)?;
        if let Some(element) = kernel.element(remote)? {
            remote = kernel.resolve(element)?;
        }
    }
    Ok(place)
}

/// The answer for an instruction. A bit field is read as the byte in which it begins: none of ours
/// goes beyond it.
fn answer(place: &Place, question: u32) -> Result<u32, Misfit> {
    let within = place.bit % 8;
    match question {
        BYTE_OFFSET => Ok(place.bit / 8),
        LEFT_SHIFT if within + place.bits <= 8 => Ok(64 - within - place.bits),
        RIGHT_SHIFT if place.bits > 0 => Ok(64 - place.bits),
        _ => Err(Misfit::Damaged("a question about a member that this loader does not know")),
    }
}

/// Writes `value` where an instruction holds a member's offset.
fn patch(code: &mut [u64], at: usize, value: u32) -> Result<(), Misfit> {
    let instruction = code.get_mut(at).ok_or("a relocation of no instruction")?;
    match *instruction & 7 {
        LOAD_MEMORY | STORE | STORE_REGISTER => {
            let offset = u16::try_from(value).ok().filter(|&offset| offset < 1 << 15);
            let offset = offset.ok_or("a member too far from its struct's beginning")?;
            *instruction = *instruction & !0xffff_0000 | u64::from(offset) << 16;
        }
        LOAD => return Err(Misfit::Damaged("a member's offset in a long constant")),
        _ => *instruction = *instruction & 0xffff_ffff | u64::from(value) << 32,
    }
    Ok(())
}

/// Patches the program of section `section` for this kernel.
pub fn relocate(
    code: &mut [u64],
    section: &str,
    own: &Btf<'_>,
    extension: Bytes<'_>,
    kernel: &Btf<'_>,
) -> Result<(), Misfit> {
    let head = extension.u32(4)? as usize;
    let (start, length) = (extension.u32(24)? as usize, extension.u32(28)? as usize);
    let table = extension.at(head + start, length)?;
    let each = table.u32(0)? as usize;
    let mut at = 4;
    while at < table.0.len() {
        let (name, count) = (own.text(table.u32(at)?)?, table.u32(at + 4)? as usize);
        at += 8;
        if name == section {
            for record in (0..count).map(|n| at + n * each) {
                let access = own.text(table.u32(record + 8)?)?;
                let place = place(own, kernel, table.u32(record + 4)?, access)?;
                let value = answer(&place, table.u32(record + 12)?)?;
                patch(code, table.u32(record)? as usize / 8, value)?;
            }
        }
        at += count * each;
    }
    Ok(())
}
