extern "C" __global__ void my_kernel(float* data, int n)
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) {
        return;
    }
    data[t] = data[t] * 2.0f;
}
