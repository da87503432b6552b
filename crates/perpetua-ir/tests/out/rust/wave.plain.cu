extern "C" __global__ void wave(const float* now, const float* before, float* next, float courant, unsigned int width, unsigned int height)
{
    const unsigned long long t = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    const unsigned long long t1 = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned long long t2 = t1 * (unsigned long long)width + t;
    const bool test = t >= 1ull && t + 1ull < (unsigned long long)width && t1 >= 1ull && t1 + 1ull < (unsigned long long)height;
    if (!test) {
        return;
    }
    const float t3 = now[t2 - (unsigned long long)width] + now[t2 + (unsigned long long)width];
    const float t4 = courant * courant * (t3 + now[t2 + 1ull] + now[t2 - 1ull] - 4.0f * now[t2]);
    next[t2] = 2.0f * now[t2] - before[t2] + t4;
}
