"""What the table of builtins cannot measure: how to call generic builtins, and what those on tiles and memory do."""

from __future__ import annotations

CALLS: dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = {
    "spatial_vector": ((("vec3f", "vec3f"), ("spatial_vectorf",)),),
    "norm_l1": ((("vec3f",), ("floatf",)),),
    "div": ((("vec3d", "floatd"), ("vec3d",)), (("mat33d", "floatd"), ("mat33d",)), (("quatd", "floatd"), ("quatd",))),
    "div_approx": ((("floatd", "floatd"), ("floatd",)), (("vec3d", "floatd"), ("vec3d",))),
    "lerp": ((("vec3d", "vec3d", "floatd"), ("vec3d",)), (("quatd", "quatd", "floatd"), ("quatd",))),
    "vector": ((("floatd", "floatd", "floatd"), ("vec3d",)),),
    "matrix_from_cols": ((("vec3d", "vec3d", "vec3d"), ("mat33d",)),),
    "matrix_from_rows": ((("vec3d", "vec3d", "vec3d"), ("mat33d",)),),
    "quaternion": ((("floatd", "floatd", "floatd", "floatd"), ("quatd",)), (("vec3d", "floatd"), ("quatd",))),
    "transformation": ((("vec3d", "quatd"), ("transformd",)),),
    "spatial_adjoint": ((("mat33d", "mat33d"), ("spatial_matrixd",)),),
    "inverse_approx": ((("mat33f",), ("mat33f",)),),
    "norm_l2": ((("vec3d",), ("floatd",)),),
    "norm_huber": ((("vec3f",), ("floatf",)), (("vec3f", "floatf"), ("floatf",))),
    "norm_pseudo_huber": ((("vec3f",), ("floatf",)), (("vec3f", "floatf"), ("floatf",))),
    "smooth_normalize": ((("vec3f",), ("vec3f",)), (("vec3f", "floatf"), ("vec3f",))),
    "quat_from_euler": ((("vec3f", "0", "1", "2"), ("quatf",)),),
    "quat_to_euler": ((("quatf", "0", "1", "2"), ("vec3f",)),),
    "quat_to_rpy": ((("quatf",), ("vec3f",)),),
    "quat_twist": ((("vec3f", "quatf"), ("quatf",)),),
    "quat_twist_angle": ((("vec3f", "quatf"), ("floatf",)),),
    "quat_twist_angle_signed": ((("vec3f", "quatf"), ("floatf",)),),
    "transform_from_matrix": ((("mat44d",), ("transformd",)),),
    "transform_to_matrix": ((("transformd",), ("mat44d",)),),
    "transform_compose": ((("vec3d", "quatd", "vec3d"), ("mat44d",)),),
    "transform_decompose": ((("mat44d",), ("vec3d", "quatd", "vec3d")),),
    "velocity_at_point": ((("spatial_vectorf", "vec3f"), ("vec3f",)),),
    "transform_twist": ((("transformf", "spatial_vectorf"), ("spatial_vectorf",)),),
    "transform_wrench": ((("transformf", "spatial_vectorf"), ("spatial_vectorf",)),),
}
"""Calls of builtins that the registry types loosely: arguments (kinds of real numbers, or texts) and results."""

UNCOMPARED = frozenset(("eig3",))
"""Functions on symmetric matrices: no difference along one entry says anything."""

# fmt: off
LINEAR = frozenset((
    "add_inplace", "assign", "assign_copy", "assign_inplace", "bfloat16", "copy", "extract", "float16", "identity",
    "matrix", "quat_identity", "sub_inplace", "tile", "tile_add_inplace", "tile_arange", "tile_assign",
    "tile_astype", "tile_broadcast", "tile_empty", "tile_extract", "tile_fft", "tile_from_thread", "tile_full",
    "tile_ifft", "tile_ones", "tile_reshape", "tile_scatter_add", "tile_scatter_masked", "tile_slice_indexed",
    "tile_squeeze", "tile_sub_inplace", "tile_sum", "tile_transpose", "tile_view", "tile_zeros",
    "transform_add_inplace", "transform_identity", "transform_set_rotation", "transform_set_rotation_copy",
    "transform_set_translation", "transform_set_translation_copy", "transform_sub_inplace", "tuple", "untile",
    "view", "volume_index_to_world", "volume_index_to_world_dir", "volume_world_to_index",
    "volume_world_to_index_dir", "zeros",
))
# fmt: on
"""Their adjoints read nothing, also where the registry knows of none since they hold no operation of their own."""

READS: dict[str, list[str] | None] = {
    "tile_dot": ["1", "0"],
    "tile_matmul": ["1", "0"],
    "where": ["", "0", "0"],
    "select": ["", "0", "0"],
    "tile_axpy": ["1", "0", ""],
    **dict.fromkeys(
        (
            "array",
            "block_dim",
            "breakpoint",
            "expect_eq",
            "expect_near",
            "expect_neq",
            "index",
            "indexref",
            "iter_next",
            "len",
            "load",
            "printf",
            "range",
            "reversed",
            "slice",
            "static",
            "store",
            "tid",
        )
    ),
}
"""For each argument the positions that its adjoint reads; None: any may be read, or no gradient is at stake."""

# fmt: off
FLAT = frozenset((
    "argmax", "argmin", "atomic_and", "atomic_cas", "atomic_exch", "atomic_or", "atomic_xor", "bit_and",
    "bit_and_inplace", "bit_count", "bit_or", "bit_or_inplace", "bit_xor", "bit_xor_inplace", "bool",
    "bvh_get_group_root", "bvh_query_aabb", "bvh_query_aabb_tiled", "bvh_query_capsule", "bvh_query_next",
    "bvh_query_next_tiled", "bvh_query_ray", "bvh_query_ray_tiled", "bvh_query_sphere", "hash_grid_point_id",
    "hash_grid_query", "hash_grid_query_next", "int", "int16", "int32", "int64", "int8", "intersect_tri_tri",
    "invert", "isfinite", "isinf", "isnan", "lower_bound", "lshift", "mesh_get_bvh", "mesh_get_group_root",
    "mesh_get_index", "mesh_query_aabb", "mesh_query_aabb_next", "mesh_query_aabb_next_tiled",
    "mesh_query_aabb_tiled", "mesh_query_next", "mesh_query_ray_anyhit", "mesh_query_ray_count_intersections",
    "mesh_query_sphere", "rand_init", "randi", "randn", "randu", "rshift", "sample_triangle", "sample_unit_cube",
    "sample_unit_disk", "sample_unit_hemisphere", "sample_unit_hemisphere_surface", "sample_unit_ring",
    "sample_unit_sphere", "sample_unit_sphere_surface", "sample_unit_square", "tile_argmax", "tile_argmin",
    "tile_bit_and_inplace", "tile_bit_or_inplace", "tile_bit_xor_inplace", "tile_bvh_query_aabb",
    "tile_bvh_query_next", "tile_bvh_query_ray", "tile_mesh_query_aabb", "tile_mesh_query_aabb_next",
    "tile_query_valid", "tile_randf", "tile_randi", "tile_stack", "tile_stack_clear", "tile_stack_count",
    "tile_stack_pop", "tile_stack_push", "uint16", "uint32", "uint64", "uint8", "unot", "volume_lookup_i",
    "volume_sample_i", "volume_store_i", "volume_voxel_count",
))
# fmt: on
"""No adjoint, and none is missed: no real number goes in, or none comes out, or it is one of steps."""

OUTPUTS: dict[str, int] = {
    "svd2": 1,
    "svd3": 1,
    "qr3": 1,
    "eig3": 1,
    "quat_to_axis_angle": 1,
    "tile_matmul": 2,
    "mesh_query_point": 3,
    "mesh_query_point_no_sign": 3,
    "mesh_query_point_sign_normal": 3,
    "mesh_query_point_sign_parity": 3,
    "mesh_query_point_sign_winding_number": 3,
    "mesh_query_furthest_point_no_sign": 3,
    "mesh_query_ray": 4,
    "dense_gemm": 7,
    "dense_solve": 3,
    "dense_chol": 3,
    "dense_subs": 3,
    "hash_grid_query_next": 1,
    "bvh_query_next": 1,
    "mesh_query_aabb_next": 1,
    "tile_bvh_query_next": 1,
    "tile_axpy": 2,
    "tile_scatter_add": 0,
    "tile_scatter_masked": 0,
}
"""The position of the first argument that receives a result."""
