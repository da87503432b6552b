struct tuple_f32_i32_ {
    float f0_;
    int f1_;
};

struct f32_array_3_ {
    float at[3];
};

struct Particle_ {
    f32_array_3_ pos_;
    unsigned short mass_;
    unsigned char kind_;
    bool alive_;
};

struct __align__(16) f32x4_ {
    float x, y, z, w;
};

__constant__ unsigned int WEIGHTS_[4] = {
    1056964608u, 1065353216u, 2139095040u, 2147483648u,
};

__device__ float f16_to_f32_(unsigned short x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

// The first lane that faults in a launch claims the record.
__device__ void report_fault_(unsigned int* record, unsigned int site, unsigned long long first, unsigned long long second)
{
    if (atomicCAS_system(&record[0], 0u, 1u) != 0u) {
        return;
    }
    record[2] = blockIdx.x;
    record[3] = blockIdx.y;
    record[4] = blockIdx.z;
    record[5] = threadIdx.x;
    record[6] = threadIdx.y;
    record[7] = threadIdx.z;
    record[8] = (unsigned int)first;
    record[9] = (unsigned int)(first >> 32);
    record[10] = (unsigned int)second;
    record[11] = (unsigned int)(second >> 32);
    record[1] = site;
}

__device__ tuple_f32_i32_ weigh_(Particle_ p1_, float factor_)
{
    const float t_ = f16_to_f32_(p1_.mass_) * factor_ * __uint_as_float(WEIGHTS_[p1_.kind_ & 3]);
    return tuple_f32_i32_{t_, (int)p1_.kind_};
}

extern "C" __global__ void structs_(Particle_* p_, unsigned long long p_len_, f32x4_* v_, unsigned long long v_len_, unsigned char* b_, unsigned long long b_len_, Particle_ start_, bool flag_, unsigned int* fault_record, unsigned int site_base)
{
    if ((unsigned long long)threadIdx.x >= p_len_) {
        report_fault_(fault_record, site_base + 0u, (unsigned long long)threadIdx.x, p_len_);
        return;
    }
    const Particle_ p_i_ = p_[threadIdx.x];
    float acc_[3] = {};
    unsigned int i_ = 0u;
    const tuple_f32_i32_ t_ = weigh_(p_i_, 2.5f);
    for (; i_ < 3u; i_ += 1u) {
        acc_[i_] = p_[threadIdx.x].pos_.at[i_] + t_.f0_;
    }
    if ((unsigned long long)threadIdx.x >= v_len_) {
        report_fault_(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, v_len_);
        return;
    }
    const f32x4_ v_i_ = v_[threadIdx.x];
    f32x4_ changed_ = v_i_;
    changed_.z = v_i_.w + acc_[1];
    v_[threadIdx.x] = changed_;
    v_[threadIdx.x].x = v_i_.w;
    Particle_ q_ = p_i_;
    if ((unsigned long long)threadIdx.x >= b_len_) {
        report_fault_(fault_record, site_base + 2u, (unsigned long long)threadIdx.x, b_len_);
        return;
    }
    const unsigned char t1_ = (unsigned char)(b_[threadIdx.x] + 200);
    q_.kind_ = t1_;
    b_[threadIdx.x] = t1_;
    q_.alive_ = flag_;
    p_[threadIdx.x] = q_;
    p_[threadIdx.x].kind_ = start_.kind_;
}
