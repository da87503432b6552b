extern "C" __global__ void laplacian(const float* input, float* output, unsigned int width, unsigned int height)
{
    const unsigned long long t = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    const unsigned long long t1 = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned long long t2 = t1 * (unsigned long long)width + t;
    const bool test = t >= 1ull && t + 1ull < (unsigned long long)width && t1 >= 1ull && t1 + 1ull < (unsigned long long)height;
    if (!test) {
        return;
    }
    const float t3 = input[t2 - (unsigned long long)width] + input[t2 + (unsigned long long)width];
    output[t2] = t3 + input[t2 + 1ull] + input[t2 - 1ull] - 4.0f * input[t2];
}
