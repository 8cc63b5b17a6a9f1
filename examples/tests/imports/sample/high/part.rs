pub struct Part;

impl Part {
    fn show(&self) {
        crate::low::low(self);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Part;
}
