// swift-tools-version:5.9
import PackageDescription

let package = Package(
  name: "Uldp",
  products: [.library(name: "Uldp", targets: ["Uldp"])],
  targets: [
    .target(name: "CUldp"),
    .target(name: "Uldp", dependencies: ["CUldp"]),
  ]
)
