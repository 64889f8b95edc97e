//! Random texts of laws, for tests. It uses nothing of the crate: the tests of crate cwnd-linux
//! include it.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// A random text of a law.
pub(crate) struct Writer {
    state: u64,
    text: String,
    /// Locals of the open blocks, and how many were written.
    locals: Vec<String>,
    written: usize,
    hook: &'static str,
    /// The inputs of the hook, and those that may be none.
    numbers: &'static [&'static str],
    maybe: &'static [&'static str],
    /// Whether the hook is given the context.
    context: bool,
    /// Whether the law is for the rate.
    rate: bool,
}

impl Writer {
    /// A random number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % n
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn number(&mut self, depth: u32) -> String {
        if depth == 0 {
            let names = ["a", "b", "p", "q", "root"];
            return match self.below(5) {
                0 => self
                    .of(&["0", "1", "2.5", "1e300", "1e-300", "0.1", "0.5", "2", "3"])
                    .to_string(),
                1 | 2 if !self.locals.is_empty() => {
                    let place = self.below(self.locals.len() as u64) as usize;
                    self.locals[place].clone()
                }
                1 | 2 => self.of(&names).to_string(),
                _ if self.numbers.is_empty() => self.of(&names).to_string(),
                _ => self.of(self.numbers).to_string(),
            };
        }
        let less = depth - 1;
        match self.below(12) {
            11 if !matches!(self.hook, "threshold" | "window" | "interval") => "random()".into(),
            10 | 11 => self.of_history(less),
            0 | 1 => {
                let (x, y) = (self.number(less), self.number(less));
                format!("({x} {} {y})", self.of(&["+", "-", "*", "/", "^"]))
            }
            8 => format!("({} / 1 s)", self.seconds(less)),
            9 => format!("({} or {})", self.perhaps(less), self.number(less)),
            2 => {
                let x = self.number(less);
                let function =
                    self.of(&["abs", "cbrt", "ceil", "exp", "floor", "log", "log10", "sqrt"]);
                format!("{function}({x})")
            }
            3 => {
                let (x, y, z) = (self.number(less), self.number(less), self.number(less));
                format!("{}({x}, {y}, {z})", self.of(&["min", "max"]))
            }
            4 => {
                let (x, y, condition) = (self.number(less), self.number(less), self.truth(less));
                format!("({x} if {condition} else {y})")
            }
            5 => format!("-{}", self.number(less)),
            6 => format!("(m or {})", self.number(less)),
            _ if !self.maybe.is_empty() => {
                let input = self.of(self.maybe);
                format!("(({input} or (now - last_cut)) / 1 s)")
            }
            _ => self.number(less),
        }
    }

    /// A number of the values of a history.
    fn of_history(&mut self, depth: u32) -> String {
        self.written += 1;
        let each = format!("e{}", self.written);
        let before = self.locals.len();
        match self.below(6) {
            0 => self.of(&["sum(h)", "count(h)", "(sum(waits) / 1 s)"]).to_string(),
            1 => format!("({}(h) or {})", self.of(&["max", "mean", "min"]), self.number(depth)),
            2 => format!("((max(waits) or {}) / 1 s)", self.seconds(depth)),
            3 => format!("count({each} > {} for {each} in waits)", self.seconds(depth)),
            kind => {
                self.locals.push(each.clone());
                let value = self.number(depth);
                self.locals.truncate(before);
                match (kind, self.of(&["max", "mean", "min"])) {
                    (4, function) => {
                        format!("({function}({value} + {each} for {each} in h) or 1)")
                    }
                    _ => format!("sum({each} * {value} for {each} in h)"),
                }
            }
        }
    }

    /// A number that may be none.
    fn perhaps(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.of(&["m", "none", "(m or none)"]).to_string();
        }
        let less = depth - 1;
        let condition = self.truth(less);
        match self.below(4) {
            0 => format!("(none if {condition} else {})", self.number(less)),
            1 => format!("({} if {condition} else {})", self.perhaps(less), self.perhaps(less)),
            2 => format!("({} if {condition} else {})", self.number(less), self.perhaps(less)),
            _ => format!("({} or {})", self.perhaps(less), self.perhaps(less)),
        }
    }

    /// A time of the clock, some of states that begin with 0 or none.
    fn instant(&mut self, depth: u32) -> String {
        if depth == 0 {
            let names = ["t", "t2", "(u or t)", "now", "last_cut"];
            return self.of(&names[..if self.context { 5 } else { 3 }]).to_string();
        }
        let less = depth - 1;
        match self.below(4) {
            0 => format!("({} + {})", self.instant(less), self.seconds(less)),
            1 => format!("({} - {})", self.instant(less), self.seconds(less)),
            2 => {
                let (x, y) = (self.instant(less), self.instant(less));
                format!("({x} if {} else {y})", self.truth(less))
            }
            _ => self.instant(less),
        }
    }

    fn seconds(&mut self, depth: u32) -> String {
        if depth == 0 {
            let names = ["1 ms", "0.3 s", "gap", "pace", "(rtt or 1 s)"];
            return self.of(&names[..if self.context { 5 } else { 3 }]).to_string();
        }
        let less = depth - 1;
        match self.below(3) {
            0 => format!("({} - {})", self.instant(less), self.instant(less)),
            1 => format!("max({}, {})", self.seconds(less), self.seconds(less)),
            _ => format!("({} * {})", self.number(less), self.seconds(less)),
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self
                .of(&[
                    "f",
                    "f2",
                    "true",
                    "m is none",
                    "m is not none",
                    "u is none",
                    "c is first",
                    "c is not second",
                    "(last is not none and last is loss)",
                    "(last is mark if last is not none else f)",
                ])
                .to_string();
        }
        let less = depth - 1;
        match self.below(7) {
            5 => {
                let (x, y) = (self.instant(less), self.instant(less));
                format!("({x} {} {y})", self.of(&["<", "<=", ">", ">=", "==", "!="]))
            }
            6 => {
                let (x, y) = (self.truth(less), self.truth(less));
                format!("({x} if {} else {y})", self.truth(less))
            }
            0 | 1 => {
                let (x, y) = (self.number(less), self.number(less));
                format!("({x} {} {y})", self.of(&["<", "<=", ">", ">=", "==", "!="]))
            }
            2 => format!("(not {})", self.truth(less)),
            3 => {
                let (x, y) = (self.truth(less), self.truth(less));
                format!("({x} {} {y})", self.of(&["and", "or"]))
            }
            _ => self.truth(less),
        }
    }

    fn line(&mut self, indent: usize, line: &str) {
        (0..indent).for_each(|_| self.text.push(' '));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn block(&mut self, indent: usize, depth: u32) {
        let before = self.locals.len();
        for _ in 0..=self.below(3) {
            let depth_of = self.of(&[0, 1, 2]);
            match self.below(17) {
                16 if depth > 0 => {
                    let (count, most) = (self.number(1), self.of(&[1, 3]));
                    self.line(indent, &format!("repeat {count} at most {most}:"));
                    self.block(indent + 2, 0);
                }
                13 => {
                    let value = self.number(depth_of);
                    self.line(indent, &format!("h.add({value})"));
                }
                14 => {
                    let value = self.seconds(depth_of);
                    self.line(indent, &format!("waits.add({value})"));
                }
                15 => {
                    let (of, value) = (self.of(&["h = h *", "waits = waits /"]), self.number(1));
                    self.line(indent, &format!("{of} {value}"));
                }
                8 => {
                    let (to, value) = (self.of(&["t", "t2", "u"]), self.instant(depth_of));
                    self.line(indent, &format!("{to} = {value}"));
                }
                9 => {
                    let value = self.seconds(depth_of);
                    self.line(indent, &format!("gap = {value}"));
                }
                10 => {
                    let value = self.perhaps(2);
                    self.line(indent, &format!("m = {value}"));
                }
                11 => {
                    let value = self.truth(depth_of);
                    self.line(indent, &format!("f2 = {value}"));
                }
                12 if depth > 0 => {
                    let condition = self.truth(depth_of);
                    self.line(indent, &format!("if {condition}:"));
                    let answer = self.answer();
                    self.line(indent + 2, &format!("return{answer}"));
                }
                0..=2 => {
                    let (to, value) = (self.of(&["a", "b"]), self.number(depth_of));
                    self.line(indent, &format!("{to} = {value}"));
                }
                3 => {
                    let value = match self.below(3) {
                        0 => "none".to_string(),
                        1 => format!("none if {} else {}", self.truth(1), self.number(1)),
                        _ => self.number(depth_of),
                    };
                    self.line(indent, &format!("m = {value}"));
                }
                4 => {
                    let value = self.truth(depth_of);
                    self.line(indent, &format!("f = {value}"));
                }
                5 => {
                    let value = self.number(depth_of);
                    self.written += 1;
                    let name = format!("l{}", self.written);
                    self.line(indent, &format!("let {name} = {value}"));
                    self.locals.push(name);
                }
                6 if depth > 0 => {
                    let condition = self.truth(depth_of);
                    self.line(indent, &format!("if {condition}:"));
                    self.block(indent + 2, depth - 1);
                    for _ in 0..self.below(3) {
                        let condition = self.truth(1);
                        self.line(indent, &format!("elif {condition}:"));
                        self.block(indent + 2, depth - 1);
                    }
                    if self.below(2) == 0 {
                        self.line(indent, "else:");
                        self.block(indent + 2, depth - 1);
                    }
                }
                _ => self.line(indent, "pass"),
            }
        }
        self.locals.truncate(before);
    }

    /// What a return is followed by.
    fn answer(&mut self) -> String {
        match self.hook {
            "tick" | "start" => format!(" {} / 1 s", self.number(1)),
            "cut" if self.rate => format!(" {} / {}", self.number(1), self.seconds(1)),
            "interval" => format!(" {}", self.seconds(1)),
            "grow" | "cut" => format!(" {}", self.number(1)),
            "threshold" | "window" => format!(" {}", self.perhaps(2)),
            "leave_slow_start" | "delay_rises" => format!(" {}", self.truth(1)),
            _ => String::new(),
        }
    }

    fn hook(
        &mut self,
        name: &'static str,
        numbers: &'static [&'static str],
        maybe: &'static [&'static str],
    ) {
        (self.hook, self.numbers, self.maybe) = (name, numbers, maybe);
        self.context = !matches!(name, "threshold" | "rescale" | "interval");
        self.line(0, &format!("on {name}:"));
        if matches!(name, "threshold" | "window" | "interval") {
            let condition = self.truth(1);
            self.line(3, &format!("if {condition}:"));
            let answer = self.answer();
            self.line(5, &format!("return{answer}"));
        } else {
            self.block(3, 2);
            if name == "cut" {
                self.line(3, "last = why");
            }
        }
        // Others end with a warning, or with none.
        if matches!(name, "leave_slow_start" | "delay_rises" | "start" | "interval")
            || matches!(name, "grow" | "cut" | "tick") && self.below(3) > 0
        {
            let answer = self.answer();
            self.line(3, &format!("return{answer}"));
        }
    }

    pub(crate) fn new(seed: u64) -> Self {
        Writer {
            state: seed,
            text: String::new(),
            locals: Vec::new(),
            written: 0,
            hook: "",
            numbers: &[],
            maybe: &[],
            context: false,
            rate: seed % 4 == 3,
        }
    }

    pub(crate) fn law(seed: u64) -> String {
        let mut writer = Writer::new(seed);
        let kind = if writer.rate { "rate " } else { "" };
        writer.line(0, &format!("{kind}law random \"a random law\""));
        for line in [
            "parameter p = 0.5 in (0, 1) \"one\"",
            "parameter q = 3 in [1, 9] \"another\"",
            "parameter c = first in {second, first} \"a choice\"",
            "state a = 0 \"one\"",
            "state b = p * 7 \"another\"",
            "state m = none \"perhaps\"",
            "state f = false \"a truth\"",
            "state f2 = 0 \"another\"",
            "state t = 0 \"a time\"",
            "state t2 = 0 \"another\"",
            "state u = none \"perhaps a time\"",
            "state gap = 0 \"seconds\"",
            "state last = none \"perhaps a signal\"",
            "history h of 3",
            "history waits of 2",
            "let root = sqrt(a + b) * p",
            "let pace = min_rtt or now - last_cut if root > 1 else gap + 1 ms",
        ] {
            writer.line(0, line);
        }
        if writer.rate {
            writer.line(0, "on clock:");
            writer.line(3, "return reports");
            writer.hook("tick", &["(rate * 1 s)", "packet"], &["rtt", "min_rtt"]);
            writer.hook("cut", &["(rate * 1 s)", "rtts_since_cut"], &["rtt"]);
            writer.hook("start", &["w"], &["latest_rtt"]);
            writer.hook("losses", &["lost.packets", "lost.sent"], &[]);
            writer.hook("window", &["packet"], &[]);
            writer.hook("delay_rises", &["packet"], &["rtt"]);
            writer.hook("interval", &["p"], &[]);
        } else {
            writer.window_hooks();
        }
        writer.hook("rescale", &["factor"], &[]);
        // The types are those of the letters, whatever else is assigned.
        for line in ["t = t2", "t2 = u or t", "f2 = f", "gap = 0 s * a", "m = a", "a = b"] {
            writer.line(3, line);
        }
        writer.line(3, "waits.add(gap)");
        writer.line(0, "on observe:");
        writer.line(3, "u = now");
        writer.text
    }

    fn window_hooks(&mut self) {
        self.hook("grow", &["w", "acked", "rtts_since_cut"], &["rtt", "min_rtt"]);
        self.hook("cut", &["w", "packet"], &["rtt"]);
        self.hook("enter", &["w"], &["latest_rtt"]);
        self.hook("round", &["round.sent", "round.lost"], &[]);
        self.hook("threshold", &["cut"], &[]);
        self.hook("leave_slow_start", &["w"], &["rtt"]);
        self.line(0, "on reduced:");
        self.line(3, "a = w");
    }
}
