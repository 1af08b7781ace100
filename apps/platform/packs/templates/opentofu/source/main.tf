variable "size" {
  type = number
}

resource "terraform_data" "disk" {
  input = { size = var.size }
}

output "size" {
  value = var.size
}
