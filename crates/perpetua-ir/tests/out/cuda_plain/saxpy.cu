extern "C" __global__ void saxpy(float a, const float* x, float* y, int n)
{
    const int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) {
        return;
    }
    y[idx] = a * x[idx] + y[idx];
}
