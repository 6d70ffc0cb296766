"""An ordinary program for the benchmarks of builds: a module with some kernels, a thousand launches."""

import warp as wp


@wp.kernel
def fill(x: wp.array(dtype=float), value: float):
    x[wp.tid()] = value


@wp.kernel
def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i] + 0.25 * (x[wp.max(i - 1, 0)] + x[wp.min(i + 1, x.shape[0] - 1)])


@wp.kernel
def total(x: wp.array(dtype=float), result: wp.array(dtype=float)):
    wp.atomic_add(result, 0, x[wp.tid()])


def main() -> None:
    x, y = (wp.zeros(256, dtype=float, device="cpu") for _ in range(2))
    result = wp.zeros(1, dtype=float, device="cpu")
    wp.launch(fill, dim=256, inputs=[x, 1.0], device="cpu")
    for _ in range(500):
        wp.launch(smooth, dim=256, inputs=[x], outputs=[y], device="cpu")
        wp.launch(smooth, dim=256, inputs=[y], outputs=[x], device="cpu")
    wp.launch(total, dim=256, inputs=[x], outputs=[result], device="cpu")
    print(result.numpy())


if __name__ == "__main__":
    main()
