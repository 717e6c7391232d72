//! Reads what a client sends line by line, in bounded memory.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Longest line that is kept; RFC 5321 allows 998 bytes in a mail and 510 in a command.
const LINE_LIMIT: usize = 64 * 1024;

/// A line without its end, or what stands in its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, and whether it ended as RFC 5321 wants it, with CR and LF.
    Text(Vec<u8>, bool),
    /// A line beyond all bounds; it was read and thrown away.
    TooLong,
    /// The client has closed the connection.
    End,
}

/// Reads the next line.
pub(crate) async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Line> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(Line::End);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        if line.len() + taken > LINE_LIMIT {
            too_long = true;
            line.clear();
        } else if !too_long {
            line.extend_from_slice(&chunk[..taken]);
        }
        reader.consume(taken);
        if end.is_none() {
            continue;
        }
        if too_long {
            return Ok(Line::TooLong);
        }
        line.pop();
        let regular = line.last() == Some(&b'\r');
        if regular {
            line.pop();
        }
        return Ok(Line::Text(line, regular));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_with_both_characters_or_are_told_apart() {
        let long = [&[b'x'; LINE_LIMIT + 1][..], b"\r\nNOOP\r\n"].concat();
        let mut input: &[u8] = b"EHLO me\r\nbare\n\r\ncut";
        let text = |line: &[u8], regular| Line::Text(line.to_vec(), regular);
        assert_eq!(read_line(&mut input).await.unwrap(), text(b"EHLO me", true));
        assert_eq!(read_line(&mut input).await.unwrap(), text(b"bare", false));
        assert_eq!(read_line(&mut input).await.unwrap(), text(b"", true));
        assert_eq!(read_line(&mut input).await.unwrap(), Line::End);
        let mut input = &long[..];
        assert_eq!(read_line(&mut input).await.unwrap(), Line::TooLong);
        assert_eq!(read_line(&mut input).await.unwrap(), text(b"NOOP", true));
    }
}
