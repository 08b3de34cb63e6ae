//! The encoding of protobuf: tagged values, as the decoders read them that Kubernetes' Go types have.

use crate::Error;

/// A value with the number of its field.
pub(crate) enum Piece<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// A value that no field of Kubernetes' types can have.
    Other,
}

pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

const CUT_OFF: &str = "unexpected EOF";

impl<'a> Reader<'a> {
    /// Returns the next field and its value, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Piece<'a>)>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        // Go cuts the number to 32 bits with a sign.
        let number = (tag >> 3) as u32;
        if number == 0 || number > i32::MAX as u32 {
            return Err(Error::new("expected the number of a field"));
        }
        let piece = match tag & 7 {
            3 => self.skip_group().map(|()| Piece::Other)?,
            kind => self.piece(kind)?,
        };
        Ok(Some((number, piece)))
    }

    fn piece(&mut self, kind: u64) -> Result<Piece<'a>, Error> {
        Ok(match kind {
            0 => Piece::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?.iter().rev();
                Piece::Fixed64(bytes.fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
            }
            2 => {
                let length = self.varint()?;
                Piece::Bytes(self.take(usize::try_from(length).map_err(|_| Error::new(CUT_OFF))?)?)
            }
            5 => self.take(4).map(|_| Piece::Other)?,
            4 => return Err(Error::new("found the end of a group that has no start")),
            _ => return Err(Error::new("illegal wire type")),
        })
    }

    /// Skips the rest of a group and the groups in it.
    fn skip_group(&mut self) -> Result<(), Error> {
        let mut depth = 1;
        while depth > 0 {
            match self.varint()? & 7 {
                3 => depth += 1,
                4 => depth -= 1,
                kind => {
                    self.piece(kind)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::new("integer overflow"))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Error::new(CUT_OFF))?;
        self.0 = rest;
        Ok(bytes)
    }
}

pub(crate) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
