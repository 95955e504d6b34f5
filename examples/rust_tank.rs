//! The bug of docs/tutorials/a-rust-program.md: more is drained than there is, and the level wraps around.
//!
//! rust_tank.s is what rustc 1.95 makes of it, so that `make examples` needs no Rust (`@examples@` becomes this folder):
//!
//!     RUSTC_BOOTSTRAP=1 rustc --crate-type=lib --emit=asm -g -C opt-level=1 -C panic=abort -C overflow-checks=off \
//!         --remap-path-prefix="$PWD"=@examples@ --target riscv64imac-unknown-none-elf rust_tank.rs -o rust_tank.s
//!     sed -i '/^\t.attribute/d' rust_tank.s
#![feature(no_core, lang_items, auto_traits)]
#![no_core]
#![allow(internal_features, static_mut_refs, dead_code)]

pub mod tank {
    pub enum Request {
        Litre,
        Litres(u32),
    }

    pub struct Tank {
        pub level: u32,
        pub requests: u32,
    }

    impl Tank {
        #[inline(never)]
        pub fn fill(&mut self, litres: u32) {
            self.level = self.level + litres;
        }

        #[inline(never)]
        pub fn drain(&mut self, request: Request) {
            self.requests = self.requests + 1;
            let litres = match request {
                Request::Litre => 1,
                Request::Litres(litres) => litres,
            };
            self.level = self.level - litres;
        }
    }

    pub static mut TANK: Tank = Tank { level: 0, requests: 0 };
}

#[inline(never)]
fn serve(tank: &mut tank::Tank, customer: u32) {
    match customer {
        2 => tank.drain(tank::Request::Litres(30)),
        5 => tank.drain(tank::Request::Litres(45)),
        _ => tank.drain(tank::Request::Litre),
    }
}

pub static mut REPORTED: u32 = 0;

#[inline(never)]
fn report(level: u32) {
    unsafe { REPORTED = level }
}

#[no_mangle]
pub extern "C" fn main() -> u32 {
    let tank = unsafe { &mut tank::TANK };
    tank.fill(80);
    let mut customer = 0;
    while customer < 9 {
        serve(tank, customer);
        customer = customer + 1;
    }
    report(tank.level);
    0
}

/// What a program needs of Rust's `core`, which would have to be installed for this target.
mod least {
    #[lang = "pointee_sized"]
    pub trait PointeeSized {}
    #[lang = "meta_sized"]
    pub trait MetaSized: PointeeSized {}
    #[lang = "sized"]
    pub trait Sized: MetaSized {}
    #[lang = "copy"]
    pub trait Copy {}
    impl Copy for u32 {}
    #[lang = "legacy_receiver"]
    pub trait LegacyReceiver {}
    impl<T: PointeeSized> LegacyReceiver for &T {}
    impl<T: PointeeSized> LegacyReceiver for &mut T {}
    #[lang = "freeze"]
    pub unsafe auto trait Freeze {}
    #[lang = "unpin"]
    pub auto trait Unpin {}
    #[lang = "unsafe_unpin"]
    pub unsafe auto trait UnsafeUnpin {}
    #[lang = "drop_in_place"]
    unsafe fn drop_in_place<T: PointeeSized>(_: *mut T) {}

    #[lang = "add"]
    pub trait Add<Rhs = Self> {
        type Output;
        fn add(self, other: Rhs) -> Self::Output;
    }
    impl Add for u32 {
        type Output = u32;
        fn add(self, other: u32) -> u32 {
            self + other
        }
    }
    #[lang = "sub"]
    pub trait Sub<Rhs = Self> {
        type Output;
        fn sub(self, other: Rhs) -> Self::Output;
    }
    impl Sub for u32 {
        type Output = u32;
        fn sub(self, other: u32) -> u32 {
            self - other
        }
    }
    #[lang = "partial_ord"]
    pub trait PartialOrd<Rhs: PointeeSized = Self>: PointeeSized {
        fn lt(&self, other: &Rhs) -> bool;
        fn le(&self, other: &Rhs) -> bool;
        fn gt(&self, other: &Rhs) -> bool;
        fn ge(&self, other: &Rhs) -> bool;
    }
    impl PartialOrd for u32 {
        fn lt(&self, other: &u32) -> bool {
            *self < *other
        }
        fn le(&self, other: &u32) -> bool {
            *self <= *other
        }
        fn gt(&self, other: &u32) -> bool {
            *self > *other
        }
        fn ge(&self, other: &u32) -> bool {
            *self >= *other
        }
    }
}
