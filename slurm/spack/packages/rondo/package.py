from spack.package import *


class Rondo(CMakePackage):
    """Schedules for collective communication between GPUs, with a proof of how good they are."""

    # Builds the checkout that this recipe lies in: spack dev-build rondo@main, or spack develop --path CHECKOUT.
    git = "file://" + join_path(ancestor(__file__, 5))

    license("MIT")

    version("main", branch="main")

    variant("tests", default=False, description="Build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hdf5@1.10:+mpi")
    depends_on("petsc@3.18:+mpi+double~complex")
    depends_on("clp@1.17:")
    depends_on("cbc@2.10:")
    depends_on("metis@5:")
    depends_on("lemon@1.3:")
    depends_on("boost+program_options")
    depends_on("nlohmann-json@3.11:")
    depends_on("fmt@9:")
    depends_on("nauty@2.7:")
    depends_on("pugixml@1.13:")
    depends_on("xxhash@0.8:")
    depends_on("sqlite@3.36:")
    depends_on("googletest", when="+tests")

    conflicts("%gcc@:10", msg="Rondo is written in C++20")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("RONDO_TESTS", "tests"),
            self.define("RONDO_BENCHMARKS", False),
        ]
