//! Every function of the engine is reached: for each method of its `Handler` trait there is a sequence that `vte` turns
//! into a call of it, and the same sequence through us has the same effect on the screen.
//!
//! `vte`'s own dispatcher tells which methods a sequence calls, so a method that the table forgets fails the test.

use std::collections::BTreeSet;
use std::time::Duration;

use alacritty_terminal::vte::ansi::{self, Handler, Processor};

use crate::support::{bare_rows, rows, terminal};

/// Method, sequence, and whether the screen must be that of the bare engine.
const TABLE: &[(&str, &str, Same)] = &[
    ("set_title", "\x1b]2;name\x07x", Same::Yes),
    ("set_cursor_style", "\x1b[3 qx", Same::Yes),
    ("set_cursor_shape", "\x1b]50;CursorShape=1\x07x", Same::Yes),
    ("input", "text 日本 e\u{301}", Same::Yes),
    ("goto", "\x1b[3;4Hx", Same::Yes),
    ("goto_line", "\x1b[3dx", Same::Yes),
    ("goto_col", "\x1b[5Gx", Same::Yes),
    ("insert_blank", "abcd\x1b[2G\x1b[2@", Same::Yes),
    ("move_up", "\x1b[5;5H\x1b[2Ax", Same::Yes),
    ("move_down", "\x1b[2Bx", Same::Yes),
    ("identify_terminal", "\x1b[cx", Same::Yes),
    ("device_status", "\x1b[6nx", Same::Yes),
    ("move_forward", "\x1b[3Cx", Same::Yes),
    ("move_backward", "abc\x1b[2Dx", Same::Yes),
    ("move_down_and_cr", "abc\x1b[2Ex", Same::Yes),
    ("move_up_and_cr", "\x1b[4;4H\x1b[2Fx", Same::Yes),
    ("put_tab", "a\tb", Same::Yes),
    ("backspace", "abc\x08x", Same::Yes),
    ("carriage_return", "abc\rx", Same::Yes),
    ("linefeed", "abc\nx", Same::Yes),
    ("bell", "a\x07b", Same::Yes),
    ("substitute", "a\x1ab", Same::Yes),
    ("set_horizontal_tabstop", "\x1b[4G\x1bH\r\tx", Same::Yes),
    ("scroll_up", "a\r\nb\x1b[1Sx", Same::Yes),
    ("scroll_down", "a\r\nb\x1b[1Tx", Same::Yes),
    ("insert_blank_lines", "a\r\nb\r\x1b[2Lx", Same::Yes),
    ("delete_lines", "a\r\nb\x1b[1;1H\x1b[1Mx", Same::Yes),
    ("erase_chars", "abcdef\x1b[2G\x1b[3X", Same::Yes),
    ("delete_chars", "abcdef\x1b[2G\x1b[3P", Same::Yes),
    ("move_backward_tabs", "\x1b[20G\x1b[2Zx", Same::Yes),
    ("move_forward_tabs", "\x1b[2Ix", Same::Yes),
    ("save_cursor_position", "ab\x1b7\x1b[4;4Hx\x1b8y", Same::Yes),
    ("restore_cursor_position", "ab\x1b[s\x1b[4;4Hx\x1b[uy", Same::Yes),
    ("clear_line", "abcdef\x1b[3G\x1b[K", Same::Yes),
    ("clear_screen", "ab\r\ncd\x1b[1;2H\x1b[J", Same::Yes),
    ("clear_tabs", "\x1b[3ga\tb", Same::Yes),
    ("set_tabs", "\x1b[3g\x1b[?5Wa\tb", Same::OursOnly("`Term` leaves this method empty: DECST8C works here")),
    ("reset_state", "abc\x1b[31m\x1bcx", Same::Yes),
    ("reverse_index", "a\r\nb\x1bMx", Same::Yes),
    ("terminal_attribute", "\x1b[1;4mab\x1b[0mc", Same::Yes),
    ("set_mode", "ab\r\x1b[4hx", Same::Yes),
    ("unset_mode", "ab\r\x1b[4h\x1b[4lx", Same::Yes),
    ("report_mode", "\x1b[4$px", Same::Yes),
    ("set_private_mode", "\x1b[?1049hx", Same::Yes),
    ("unset_private_mode", "ab\x1b[?1049hx\x1b[?1049ly", Same::Yes),
    ("report_private_mode", "\x1b[?7$px", Same::Yes),
    ("set_scrolling_region", "\x1b[2;3r\x1b[3;1Ha\r\nb\r\nc", Same::Yes),
    ("set_keypad_application_mode", "\x1b=x", Same::Yes),
    ("unset_keypad_application_mode", "\x1b=\x1b>x", Same::Yes),
    ("set_active_charset", "\x1b)0\x0eqx\x0fqx", Same::Yes),
    ("configure_charset", "\x1b(0lqk\x1b(Bx", Same::Yes),
    ("set_color", "\x1b]4;1;#102030\x07x", Same::Yes),
    ("dynamic_color_sequence", "\x1b]10;?\x07x", Same::Yes),
    ("reset_color", "\x1b]104;1\x07x", Same::Yes),
    ("clipboard_store", "\x1b]52;c;YQ==\x07x", Same::Yes),
    ("clipboard_load", "\x1b]52;c;?\x07x", Same::Yes),
    ("decaln", "\x1b#8", Same::Yes),
    ("push_title", "\x1b[22tx", Same::Yes),
    ("pop_title", "\x1b[23tx", Same::Yes),
    ("text_area_size_pixels", "\x1b[14tx", Same::Yes),
    ("text_area_size_chars", "\x1b[18tx", Same::Yes),
    ("set_hyperlink", "\x1b]8;;https://x.example/\x07link\x1b]8;;\x07", Same::Yes),
    ("set_mouse_cursor_icon", "\x1b]22;pointer\x07x", Same::Yes),
    ("report_keyboard_mode", "\x1b[?ux", Same::Yes),
    ("push_keyboard_mode", "\x1b[>1ux", Same::Yes),
    ("pop_keyboard_modes", "\x1b[<1ux", Same::Yes),
    ("set_keyboard_mode", "\x1b[=1;1ux", Same::Yes),
    ("set_modify_other_keys", "\x1b[>4;2mx", Same::Yes),
    ("report_modify_other_keys", "\x1b[?4mx", Same::Yes),
    ("set_scp", "\x1b[1;0 kx", Same::Yes),
];

/// `Handler` methods that no byte sequence reaches: `vte` never calls `newline`.
const UNREACHABLE: &[&str] = &["newline"];
/// Methods of the trait in vte 0.15.
const METHODS: usize = 71;

enum Same {
    Yes,
    OursOnly(&'static str),
}

/// Notes which methods are called.
#[derive(Default)]
struct Recorder(BTreeSet<&'static str>);

macro_rules! record {
    ($($method:ident($($argument:ty),*);)*) => {
        impl Handler for Recorder {
            $(fn $method(&mut self, $(_: $argument),*) { self.0.insert(stringify!($method)); })*
        }
        const RECORDED: &[&str] = &[$(stringify!($method)),*];
    };
}

record! {
    set_title(Option<String>);
    set_cursor_style(Option<ansi::CursorStyle>);
    set_cursor_shape(ansi::CursorShape);
    input(char);
    goto(i32, usize);
    goto_line(i32);
    goto_col(usize);
    insert_blank(usize);
    move_up(usize);
    move_down(usize);
    identify_terminal(Option<char>);
    device_status(usize);
    move_forward(usize);
    move_backward(usize);
    move_down_and_cr(usize);
    move_up_and_cr(usize);
    put_tab(u16);
    backspace();
    carriage_return();
    linefeed();
    bell();
    substitute();
    newline();
    set_horizontal_tabstop();
    scroll_up(usize);
    scroll_down(usize);
    insert_blank_lines(usize);
    delete_lines(usize);
    erase_chars(usize);
    delete_chars(usize);
    move_backward_tabs(u16);
    move_forward_tabs(u16);
    save_cursor_position();
    restore_cursor_position();
    clear_line(ansi::LineClearMode);
    clear_screen(ansi::ClearMode);
    clear_tabs(ansi::TabulationClearMode);
    set_tabs(u16);
    reset_state();
    reverse_index();
    terminal_attribute(ansi::Attr);
    set_mode(ansi::Mode);
    unset_mode(ansi::Mode);
    report_mode(ansi::Mode);
    set_private_mode(ansi::PrivateMode);
    unset_private_mode(ansi::PrivateMode);
    report_private_mode(ansi::PrivateMode);
    set_scrolling_region(usize, Option<usize>);
    set_keypad_application_mode();
    unset_keypad_application_mode();
    set_active_charset(ansi::CharsetIndex);
    configure_charset(ansi::CharsetIndex, ansi::StandardCharset);
    set_color(usize, ansi::Rgb);
    dynamic_color_sequence(String, usize, &str);
    reset_color(usize);
    clipboard_store(u8, &[u8]);
    clipboard_load(u8, &str);
    decaln();
    push_title();
    pop_title();
    text_area_size_pixels();
    text_area_size_chars();
    set_hyperlink(Option<ansi::Hyperlink>);
    set_mouse_cursor_icon(ansi::cursor_icon::CursorIcon);
    report_keyboard_mode();
    push_keyboard_mode(ansi::KeyboardModes);
    pop_keyboard_modes(u16);
    set_keyboard_mode(ansi::KeyboardModes, ansi::KeyboardModesApplyBehavior);
    set_modify_other_keys(ansi::ModifyOtherKeys);
    report_modify_other_keys();
    set_scp(ansi::ScpCharPath, ansi::ScpUpdateMode);
}

#[test]
fn the_table_names_every_method_of_the_trait() {
    assert_eq!(RECORDED.len(), METHODS);
    let named: BTreeSet<&str> = TABLE.iter().map(|(method, ..)| *method).chain(UNREACHABLE.iter().copied()).collect();
    assert_eq!(named, RECORDED.iter().copied().collect());
}

#[test]
fn each_sequence_of_the_table_calls_its_method() {
    for (method, bytes, _) in TABLE {
        let mut recorder = Recorder::default();
        let mut processor: Processor = Processor::new();
        processor.advance(&mut recorder, bytes.as_bytes());
        assert!(recorder.0.contains(method), "{bytes:?} calls {:?}, not {method}", recorder.0);
    }
}

#[test]
fn each_method_has_the_effect_it_has_on_the_bare_engine() {
    for (method, bytes, same) in TABLE {
        let mut emulator = terminal(30, 6);
        emulator.feed(Duration::ZERO, bytes.as_bytes());
        let (ours, bare) = (rows(&mut emulator), bare_rows(30, 6, bytes));
        match same {
            Same::Yes => assert_eq!(ours, bare, "{method}: {bytes:?}"),
            Same::OursOnly(why) => assert_ne!(ours, bare, "{method}: {why}"),
        }
    }
}
