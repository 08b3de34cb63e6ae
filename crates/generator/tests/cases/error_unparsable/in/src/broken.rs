pub struct A {
<<<<<<< HEAD
    a: i32,
}
