extern "C" __global__ void heat(const float* t, float* out, float k, unsigned int width, unsigned int height, unsigned int depth)
{
    const unsigned long long t1 = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    const unsigned long long t2 = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned long long t3 = (unsigned long long)blockIdx.z * (unsigned long long)blockDim.z + (unsigned long long)threadIdx.z;
    const unsigned long long t4 = (t3 * (unsigned long long)height + t2) * (unsigned long long)width;
    const unsigned long long t5 = t4 + t1;
    const bool test = t1 >= 1ull && t1 + 1ull < (unsigned long long)width && t2 >= 1ull;
    const bool test1 = test && t2 + 1ull < (unsigned long long)height && t3 >= 1ull && t3 + 1ull < (unsigned long long)depth;
    if (!test1) {
        return;
    }
    const float t6 = t[t5 - (unsigned long long)width * (unsigned long long)height] + t[t5 + (unsigned long long)width * (unsigned long long)height];
    const float t7 = t6 + t[t5 - (unsigned long long)width] + t[t5 + (unsigned long long)width];
    out[t5] = t[t5] + k * (t7 + t[t5 + 1ull] + t[t5 - 1ull] - 6.0f * t[t5]);
}
