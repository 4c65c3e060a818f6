//! The tray icon, drawn in memory: the minutes that are left, on a background whose colour says how urgent it is.

mod glyphs;

use self::glyphs::{Glyph, GlyphPoint};

/// The sizes in pixels. Trays choose the nearest: 24 for an ordinary screen, 48 for a dense one.
const SIZES: [u16; 2] = [24, 48];

/// Each pixel is sampled this often in each direction, for smooth edges.
const SAMPLES: u16 = 4;

/// The corner radius and the width of the strokes, as parts of the icon's width.
const CORNER: f32 = 0.2;
const STROKE: f32 = 0.095;

/// The area of the text, as parts of the icon's width.
const TEXT_WIDTH: f32 = 0.78;
const TEXT_HEIGHT: f32 = 0.58;

/// The gap between two glyphs, in the unit of their height.
const GLYPH_GAP: f32 = 0.32;

/// What the icon shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IconFace {
    /// Whole minutes that are left, at least one.
    Minutes(u64),
    LastMinute,
    /// The session has no end, or nothing runs.
    Unlimited,
}

/// The urgency of the icon, which is its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IconTone {
    Calm,
    Soon,
    Now,
}

/// An icon in one size, as the tray wants it: width, height, and the pixels as bytes of ARGB.
pub(crate) type IconPixmap = (i32, i32, Vec<u8>);

/// A colour of the background: red, green, blue.
type Colour = [f32; 3];

const WHITE: Colour = [255.0, 255.0, 255.0];

impl IconTone {
    fn colour(self) -> Colour {
        match self {
            Self::Calm => [27.0, 122.0, 90.0],
            Self::Soon => [176.0, 92.0, 0.0],
            Self::Now => [196.0, 32.0, 44.0],
        }
    }
}

impl IconFace {
    /// Draws the icon in every size.
    pub(crate) fn draw(self, tone: IconTone) -> Vec<IconPixmap> {
        let strokes = layout(&self.text());
        SIZES.iter().map(|size| draw_in_size(*size, &strokes, tone.colour())).collect()
    }

    /// Returns at most three characters. From 100 minutes on, hours are enough.
    fn text(self) -> String {
        match self {
            Self::Minutes(minutes @ 0..100) => minutes.to_string(),
            Self::Minutes(minutes) => match minutes / 60 {
                hours @ 0..10 => format!("{hours}h"),
                _ => "9h".to_owned(),
            },
            Self::LastMinute => "<1".to_owned(),
            Self::Unlimited => "∞".to_owned(),
        }
    }
}

/// A stroke between two points, in parts of the icon's width.
type Stroke = (GlyphPoint, GlyphPoint);

/// Places the glyphs of a text in the middle of the icon, as large as they fit.
fn layout(text: &str) -> Vec<Stroke> {
    let glyphs: Vec<Glyph> = text.chars().map(Glyph::of).collect();
    let gaps = f32::from(u8::try_from(glyphs.len().saturating_sub(1)).unwrap_or(u8::MAX));
    let width = glyphs.iter().map(|glyph| glyph.width).sum::<f32>() + gaps * GLYPH_GAP;
    // The strokes are wider than their lines.
    let scale = ((TEXT_WIDTH - STROKE) / width.max(0.01)).min(TEXT_HEIGHT - STROKE);
    let (mut left, top) = (0.5 - width * scale / 2.0, 0.5 - scale / 2.0);
    let mut strokes = Vec::new();
    for glyph in glyphs {
        let place = |(x, y): GlyphPoint| (left + x * scale, top + y * scale);
        for line in &glyph.lines {
            strokes.extend(line.windows(2).filter_map(|ends| match ends {
                [from, to] => Some((place(*from), place(*to))),
                _ => None,
            }));
        }
        left += (glyph.width + GLYPH_GAP) * scale;
    }
    strokes
}

fn draw_in_size(size: u16, strokes: &[Stroke], background: Colour) -> IconPixmap {
    let mut bytes = Vec::with_capacity(usize::from(size) * usize::from(size) * 4);
    for y in 0..size {
        for x in 0..size {
            let (inside, text) = coverage(x, y, size, strokes);
            bytes.push(to_byte(inside * 255.0));
            for (back, front) in background.iter().zip(WHITE) {
                bytes.push(to_byte(back + (front - back) * text));
            }
        }
    }
    (size.into(), size.into(), bytes)
}

/// Returns how much of a pixel is inside the background, and how much is text, each from 0 to 1.
fn coverage(x: u16, y: u16, size: u16, strokes: &[Stroke]) -> (f32, f32) {
    let (mut inside, mut text) = (0.0, 0.0);
    let position = |pixel: u16, sample: u16| {
        (f32::from(pixel) + (f32::from(sample) + 0.5) / f32::from(SAMPLES)) / f32::from(size)
    };
    for sample_y in 0..SAMPLES {
        for sample_x in 0..SAMPLES {
            let point = (position(x, sample_x), position(y, sample_y));
            if is_inside(point) {
                inside += 1.0;
            }
            if strokes.iter().any(|stroke| distance(point, *stroke) <= STROKE / 2.0) {
                text += 1.0;
            }
        }
    }
    let all = f32::from(SAMPLES * SAMPLES);
    (inside / all, text / all)
}

/// Returns whether a point is inside a square with round corners.
fn is_inside((x, y): GlyphPoint) -> bool {
    let beyond = |position: f32| (position - 0.5).abs() - (0.5 - CORNER);
    let (x, y) = (beyond(x).max(0.0), beyond(y).max(0.0));
    x.hypot(y) <= CORNER
}

/// Returns the distance of a point from a stroke.
fn distance((x, y): GlyphPoint, ((from_x, from_y), (to_x, to_y)): Stroke) -> f32 {
    let (along_x, along_y) = (to_x - from_x, to_y - from_y);
    let length = along_x * along_x + along_y * along_y;
    let part = if length > 0.0 { ((x - from_x) * along_x + (y - from_y) * along_y) / length } else { 0.0 };
    let part = part.clamp(0.0, 1.0);
    (x - from_x - part * along_x).hypot(y - from_y - part * along_y)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is clamped")]
fn to_byte(value: f32) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the small icon as text: a letter for each pixel that is mostly text, a dot for background.
    fn picture(face: IconFace) -> String {
        let (width, _, bytes) = draw_in_size(SIZES[0], &layout(&face.text()), IconTone::Calm.colour());
        let pixels: Vec<char> = bytes
            .chunks(4)
            .map(|argb| match argb {
                [0..128, ..] => ' ',
                [_, red, ..] if *red > 140 => '#',
                _ => '.',
            })
            .collect();
        let rows = pixels.chunks(usize::try_from(width).unwrap());
        rows.map(|row| row.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_text_of_the_icon_fits_two_characters() {
        let text = |minutes| IconFace::Minutes(minutes).text();
        assert_eq!([1, 59, 99].map(text), ["1", "59", "99"]);
        assert_eq!([100, 119, 120, 599, 6_000].map(text), ["1h", "1h", "2h", "9h", "9h"]);
    }

    #[test]
    fn an_icon_has_a_margin_and_opaque_text() {
        for face in [IconFace::Minutes(88), IconFace::Minutes(7), IconFace::LastMinute, IconFace::Unlimited] {
            let picture = picture(face);
            let rows: Vec<&str> = picture.lines().collect();
            assert_eq!(rows.len(), 24, "{picture}");
            for row in rows.iter().take(3).chain(rows.iter().rev().take(3)) {
                assert!(!row.contains('#'), "{picture}");
            }
            assert!(rows.iter().all(|row| !row[..2].contains('#') && !row[22..].contains('#')), "{picture}");
            assert!(picture.matches('#').count() > 20, "{picture}");
        }
    }

    #[test]
    fn different_minutes_look_different() {
        let pictures: std::collections::BTreeSet<_> =
            (1..100).map(|minutes| picture(IconFace::Minutes(minutes))).collect();
        assert_eq!(pictures.len(), 99);
    }

    #[test]
    fn pixels_are_in_the_byte_order_of_the_specification() {
        let (_, _, bytes) = IconFace::Unlimited.draw(IconTone::Now).swap_remove(0);
        // The middle of the upper edge is background: alpha, red, green, blue.
        assert_eq!(bytes[12 * 4..13 * 4], [255, 196, 32, 44]);
        assert_eq!(bytes[0], 0, "the corner is transparent");
    }
}
