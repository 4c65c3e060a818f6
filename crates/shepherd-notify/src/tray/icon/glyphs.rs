//! The shapes of the characters, as lines to draw with a round pen. A glyph is one unit high.

use std::f32::consts::PI;

/// A point, from the upper left corner.
pub(super) type GlyphPoint = (f32, f32);

/// The shape of a character.
#[derive(Clone, Debug)]
pub(super) struct Glyph {
    pub(super) width: f32,
    pub(super) lines: Vec<Vec<GlyphPoint>>,
}

/// The width of a digit.
const DIGIT: f32 = 0.56;

/// The number of segments of a full ellipse.
const SEGMENTS: f32 = 24.0;

/// An arc of an ellipse. Angles are in half turns, clockwise from the right.
struct Arc {
    centre: GlyphPoint,
    radius: GlyphPoint,
    from: f32,
    to: f32,
}

impl Arc {
    fn points(&self) -> Vec<GlyphPoint> {
        let mut points = Vec::new();
        let mut step = 0.0;
        let steps = ((self.to - self.from).abs() / 2.0 * SEGMENTS).ceil().max(1.0);
        while step <= steps {
            let angle = (self.from + (self.to - self.from) * step / steps) * PI;
            points.push((
                self.centre.0 + self.radius.0 * angle.cos(),
                self.centre.1 + self.radius.1 * angle.sin(),
            ));
            step += 1.0;
        }
        points
    }
}

fn arc(centre: GlyphPoint, radius: GlyphPoint, from: f32, to: f32) -> Vec<GlyphPoint> {
    Arc { centre, radius, from, to }.points()
}

impl Glyph {
    /// Returns the shape of a digit, `<`, `h` or `∞`. Any other character is empty.
    pub(super) fn of(character: char) -> Self {
        let (half, wide) = (DIGIT / 2.0, DIGIT);
        let digit = |lines| Self { width: wide, lines };
        match character {
            '0' => digit(vec![arc((half, 0.5), (half, 0.5), 0.0, 2.0)]),
            '1' => Self { width: 0.3, lines: vec![vec![(0.0, 0.2), (0.3, 0.0), (0.3, 1.0)]] },
            '2' => {
                let mut line = arc((half, half), (half, half), -1.0, 0.2);
                line.extend([(0.0, 1.0), (wide, 1.0)]);
                digit(vec![line])
            }
            '3' => digit(vec![
                arc((half, 0.25), (half * 0.92, 0.25), -0.9, 0.5),
                arc((half, 0.74), (half, 0.26), -0.5, 0.85),
            ]),
            '4' => digit(vec![vec![(wide * 0.75, 1.0), (wide * 0.75, 0.0), (0.0, 0.7), (wide * 1.05, 0.7)]]),
            '5' => {
                let mut line = vec![(wide * 0.92, 0.0), (wide * 0.1, 0.0), (wide * 0.04, 0.46)];
                line.extend(arc((half * 0.95, 0.68), (half * 1.05, 0.32), -0.72, 0.85));
                digit(vec![line])
            }
            '6' => digit(vec![
                arc((half, 0.69), (half, 0.31), 0.0, 2.0),
                vec![(wide * 0.78, 0.0), (wide * 0.3, 0.3), (0.0, 0.69)],
            ]),
            '7' => digit(vec![vec![(0.0, 0.0), (wide, 0.0), (wide * 0.3, 1.0)]]),
            '8' => digit(vec![
                arc((half, 0.24), (half * 0.86, 0.24), 0.0, 2.0),
                arc((half, 0.74), (half, 0.26), 0.0, 2.0),
            ]),
            '9' => digit(vec![
                arc((half, 0.31), (half, 0.31), 0.0, 2.0),
                vec![(wide, 0.31), (wide * 0.7, 0.7), (wide * 0.22, 1.0)],
            ]),
            'h' => Self {
                width: 0.46,
                lines: vec![
                    vec![(0.0, 0.0), (0.0, 1.0)],
                    [vec![(0.0, 0.66)], arc((0.23, 0.62), (0.23, 0.23), -1.0, 0.0), vec![(0.46, 1.0)]]
                        .concat(),
                ],
            },
            '<' => Self { width: 0.44, lines: vec![vec![(0.44, 0.2), (0.0, 0.5), (0.44, 0.8)]] },
            '∞' => Self {
                width: 1.1,
                lines: vec![
                    arc((0.27, 0.5), (0.27, 0.24), 0.0, 2.0),
                    arc((0.83, 0.5), (0.27, 0.24), 0.0, 2.0),
                ],
            },
            _ => Self { width: 0.0, lines: Vec::new() },
        }
    }
}
